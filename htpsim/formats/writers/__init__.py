"""Writers: what htpsim knows, in the files that other tools open and that stand beside a device's own."""

__all__: list[str] = []
