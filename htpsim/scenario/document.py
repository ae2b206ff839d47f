"""Scenario files as text: reading TOML, following ``extends``, and finding the shipped ones."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from htpsim.errors import ScenarioError, nearest, unknown_name
from htpsim.scenario.complain import Layer

FILES = frozenset({"profile", "genie_config", "htp_backend_ext"})
"""Keys whose value is the path of a file, relative to the scenario file that has it."""

BYTES_MAX = 4 * 2**20
DEPTH_MAX = 20
PRESETS = Path(__file__).parent / "presets"


def shipped() -> dict[str, Path]:
    """Return the scenarios that come with htpsim, by name: of the installed package, or of the checkout.

    One in a folder of its kind is named with it, such as "field/b16_bandwidth_bound".

    >>> all(path.suffix == ".toml" for path in shipped().values())
    True
    """
    package = Path(__file__).parents[1]
    folders = [package / "_scenarios", package.parent / "scenarios"]
    folder = next((found for found in folders if found.is_dir()), folders[0])
    paths = [*sorted(folder.glob("*.toml")), *sorted(folder.glob("*/*.toml"))]
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def find(name: str, where: str = "") -> Path:
    """Return the file of a scenario given as a path or as the name of a shipped one.

    Raises
    ------
    ScenarioError
        When there is neither; it offers the nearest name.
    """
    path = Path(name)
    known = shipped()
    if path.suffix == ".toml" or (name not in known and path.is_file()):
        return path
    if name not in known:
        close = nearest(name, known)
        listed = [shown for shown in known if "/" not in shown or shown == close]
        raise ScenarioError(unknown_name(where or "scenario", name, listed) + " (or the path of a .toml file)")
    return known[name]


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, with the paths of other files in it made absolute.

    Raises
    ------
    ScenarioError
        When it cannot be read or is no TOML; the message names line and column.
    """
    try:
        size = path.stat().st_size
        if size > BYTES_MAX:
            raise ScenarioError(f"{path}: got {size} bytes, expected a scenario file of at most {BYTES_MAX}")
        tree = tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
        resolved: dict[str, Any] = with_paths(tree, path.parent)
    except OSError as error:
        reason = "a folder" if isinstance(error, IsADirectoryError) else (error.strerror or str(error)).lower()
        hint = _hint(path) if isinstance(error, FileNotFoundError) else ""
        raise ScenarioError(f"{path}: got {reason}, expected a readable scenario file{hint}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: got no UTF-8 at byte {error.start}, expected TOML text") from error
    except (ValueError, RecursionError) as error:
        reason = "tables nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ScenarioError(f"{path}: got no valid TOML, expected a scenario: {reason}") from error
    return resolved


def _hint(path: Path) -> str:
    """Offer what a missing file may have meant: one beside it, or a shipped one."""
    meant = {f"{name}.toml": name for name in shipped()}
    meant |= {found.name: str(found) for found in path.parent.glob("*.toml")}
    close = nearest(path.name, meant)
    return f"; did you mean '{meant[close]}'?" if close else ""


def with_paths(value: Any, folder: Path, key: str = "", depth: int = 0) -> Any:
    """Return `value` with every path of a file in it taken from `folder`, unless it is absolute.

    Raises
    ------
    ValueError
        When tables are nested deeper than any scenario's, or a text has a character that no text has.
    """
    if depth > DEPTH_MAX:
        raise ValueError(f"tables nested more than {DEPTH_MAX} deep")
    if isinstance(value, dict):
        return {inner: with_paths(given, folder, inner, depth + 1) for inner, given in value.items()}
    if isinstance(value, list):
        return [with_paths(given, folder, key, depth + 1) for given in value]
    if not isinstance(value, str):
        return value
    if "\0" in value:
        raise ValueError(f"{key}: a NUL character")
    is_file = key in FILES or (key in {"preset", "value"} and value.endswith(".toml"))
    return str(folder / value) if is_file else value


def read_chain(path: Path) -> list[Layer]:
    """Return a scenario file and those that it extends, the most basic first.

    Raises
    ------
    ScenarioError
        When one cannot be read, or extends itself by whatever detour.
    """
    layers: list[Layer] = []
    seen: list[Path] = []
    while True:
        real = path.resolve()
        if real in seen:
            names = " -> ".join(found.name for found in [*seen[seen.index(real) :], real])
            raise ScenarioError(f"{layers[0].label}: extends: got a circle ({names}), expected a file that ends it")
        seen.append(real)
        tree = read_toml(path)
        base = tree.pop("extends", None)
        layers.insert(0, Layer(str(path), (), tree))
        if base is None:
            return layers
        if not isinstance(base, str) or not base.strip():
            raise ScenarioError(f"{path}: extends: got no text, expected a .toml file or a shipped scenario")
        path = path.parent / base if base.endswith(".toml") else find(base, f"{path}: extends")


def set_layer(assignments: Sequence[str], folder: Path) -> Layer:
    """Return the layer of ``key=value`` assignments: TOML values, or text where that is no TOML.

    Raises
    ------
    ScenarioError
        For every assignment that is none.

    Examples
    --------
    >>> set_layer(["guard.slots_per=core", "instances.weight=[4,2]"], Path()).tree
    {'guard': {'slots_per': 'core'}, 'instances': {'weight': [4, 2]}}
    """
    from htpsim.scenario.overlay import merge

    tree: dict[str, Any] = {}
    problems = []
    for assignment in assignments:
        key, sign, text = assignment.partition("=")
        parts = [part.strip() for part in key.split(".")]
        if not sign or not all(parts):
            problems.append(f"--set: got '{assignment}', expected key=value, such as guard.slots_per=core")
            continue
        value = _value(text.strip())
        for part in reversed(parts[: DEPTH_MAX + 1]):
            value = {part: value}
        try:
            tree = merge(tree, with_paths(value, folder))
        except ValueError as error:
            problems.append(f"--set: got {error}, expected key=value, such as guard.slots_per=core")
    if problems:
        raise ScenarioError(*problems)
    return Layer("--set", (), tree)


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return parsed["value"] if list(parsed) == ["value"] else text
