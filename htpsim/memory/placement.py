"""Where a copy of a model is loaded, and who finds it there.

A context is loaded on one core and its graphs run only there, so the core chosen at load decides who will queue behind
whom for the rest of the run. Three rules choose it: ``by-instance`` (index mod cores), ``least-loaded`` (fewest bytes
reserved, ties to the lowest core) or a core number. All three are assumptions that scenarios vary. A graph built for
several cores takes a run of neighbours, wrapped inside the device. How far one copy reaches (a core, a QNN device, the
process) is part of the registry's key: two users with equal keys share a copy. A shared copy stays on the core of the
user that loaded it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from htpsim.errors import ScenarioError, nearest, unknown_name
from htpsim.spec import Device, Model

PLACEMENTS: Final = ("by-instance", "least-loaded")
COPIES: Final = ("per-core", "per-device", "per-process")

Key = tuple[str | int, ...]
"""What the registry files a loaded model under."""


def place(placement: str, index: int, device: Device, reserved_bytes: Sequence[int]) -> int:
    """Return the core on which a copy is loaded.

    Parameters
    ----------
    placement : str
        "by-instance", "least-loaded", or a core number such as "1".
    index : int
        Index of the instance or other client that loads.
    device : Device
        The device, for its number of cores.
    reserved_bytes : sequence of int, shape (cores,) [bytes]
        Bytes reserved on each core so far.

    Raises
    ------
    ScenarioError
        When the placement is unknown or the device has no such core.

    Examples
    --------
    >>> two = Device(cores=2)
    >>> place("by-instance", 3, two, [0, 0]), place("least-loaded", 3, two, [7, 7]), place("1", 0, two, [0, 0])
    (1, 0, 1)
    """
    if placement == "by-instance":
        return index % device.cores
    if placement == "least-loaded":
        return min(range(device.cores), key=lambda core: (reserved_bytes[core], core))
    if placement.isascii() and placement.isdigit() and int(placement) < device.cores:
        return int(placement)
    close = nearest(placement, PLACEMENTS)
    raise ScenarioError(
        f"placement: got '{placement}', expected {', '.join(PLACEMENTS)} or a core from 0 to {device.cores - 1}"
        + (f"; did you mean '{close}'?" if close else "")
    )


def gang_cores(core: int, width: int, device: Device) -> tuple[int, ...]:
    """Return the cores that a graph built for `width` cores takes when placed on `core`.

    Raises
    ------
    ScenarioError
        When the device has fewer cores than the graph was built for.

    Examples
    --------
    >>> gang_cores(1, 2, Device(cores=2)), gang_cores(1, 1, Device(cores=2))
    ((1, 0), (1,))
    """
    if not 1 <= width <= device.cores:
        raise ScenarioError(f"built_for_cores: got {width}, expected 1 to {device.cores}, the cores of the device")
    return tuple((core + offset) % device.cores for offset in range(width))


def registry_key(model: Model, process: int, core: int, copies: str, device: Device, adapter: str = "") -> Key:
    """Return the key under which the registry of `process` files a copy of `model`.

    Two loads with one key are one copy: same model, same load options, same LoRA adapter where that is part of the key,
    same process, and as near to each other as `copies` ("per-core", "per-device", "per-process") asks.

    Raises
    ------
    ScenarioError
        When `copies` is none of the three.

    Examples
    --------
    >>> llm, two = Model(name="llm", role="llm"), Device(cores=2)
    >>> registry_key(llm, 0, 1, "per-core", two)
    ('llm', '', 0, 'core', 1)
    >>> registry_key(llm, 0, 1, "per-device", two), registry_key(llm, 0, 1, "per-process", two)
    (('llm', '', 0, 'device', 0), ('llm', '', 0))
    """
    loaded = (model.name, " ".join(filter(None, (model.options, adapter))), process)
    if copies == "per-core":
        return (*loaded, "core", core)
    if copies == "per-device":
        return (*loaded, "device", device.device_of(core))
    if copies == "per-process":
        return loaded
    raise ScenarioError(unknown_name("registry copies", copies, COPIES))


def copy_name(key: Key, number: int = 0) -> str:
    """Name the copy of a key, which the registry gave a number where loads do not wait for each other.

    >>> copy_name(("llm", "", 0, "core", 1)), copy_name(("llm", "a", 0), 2)
    ('llm of process 0 core 1', 'llm a of process 0 load 2')
    """
    model, options, process, *scope = key
    parts = [str(model), str(options), f"of process {process}", *map(str, scope), f"load {number}" if number else ""]
    return " ".join(part for part in parts if part)


def copy_name_of_own(model: Model, client: str) -> str:
    """Name the copy that a client loads for itself.

    >>> copy_name_of_own(Model(name="vit", role="vit"), "vlm0")
    'vit of vlm0'
    """
    return f"{model.name} of {client}"
