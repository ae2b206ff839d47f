"""The one-way layers: kept by the code, and broken by every planted violation."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
PURE = ("spec", "sched", "device", "memory")
# What a rule without clock, I/O, draws or engine has no use for.
IMPURE = {"asyncio", "datetime", "io", "numba", "os", "pathlib", "random", "simpy", "socket", "subprocess", "sys"}
IMPURE |= {"secrets", "shutil", "tempfile", "threading", "time", "uuid"}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the import linter on the `htpsim` package in `folder`, with the contracts of this repository."""
    program = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as run; run()"
    command = [sys.executable, "-c", program, "--no-logo", "--no-cache", str(ROOT / "pyproject.toml")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def package(folder: Path, modules: dict[str, str]) -> Path:
    """Write a package `htpsim` with a subpackage for every layer and the given modules, and return `folder`."""
    layers = next(contract["layers"] for contract in CONFIG["contracts"] if contract["type"] == "layers")
    names = [name.strip(" ()") for layer in layers for name in layer.split("|")]
    for name in ["", *names]:
        (folder / "htpsim" / name).mkdir(parents=True, exist_ok=True)
        (folder / "htpsim" / name / "__init__.py").touch()
    for path, text in modules.items():
        (folder / "htpsim" / path).parent.mkdir(exist_ok=True)
        (folder / "htpsim" / path).write_text(text, encoding="utf-8")
    return folder


def test_the_code_keeps_its_layers() -> None:
    outcome = lint_imports(ROOT)

    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "0 broken" in outcome.stdout


def test_imports_that_run_downward_are_allowed(tmp_path: Path) -> None:
    modules = {
        "cli/main.py": "import click\nimport htpsim.report, htpsim.experiments, htpsim.units",
        "scenario/load.py": "import pydantic\nimport htpsim.formats, htpsim.spec",
        "sim/engine.py": "import simpy\nimport htpsim.sched, htpsim.device, htpsim.memory, htpsim.results",
        "kernel/loop.py": "import numba\nimport htpsim.sched",
        "spec/device.py": "from htpsim.errors import x",
    }

    outcome = lint_imports(package(tmp_path, modules))

    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(
    ("module", "text"),
    [
        pytest.param("sched/rule.py", "import htpsim.sim", id="a rule knows an engine"),
        pytest.param("spec/a.py", "import htpsim.scenario", id="a specification knows its file"),
        pytest.param("sched/rule.py", "import htpsim.device", id="the guard knows the device"),
        pytest.param("device/rule.py", "import htpsim.memory", id="the device knows the memory"),
        pytest.param("kernel/loop.py", "import htpsim.sim", id="one engine knows the other"),
        pytest.param("units/a.py", "def f():\n    import htpsim.errors", id="leaves know each other, lazily"),
        pytest.param("sched/rule.py", "import simpy", id="simpy outside the reference engine"),
        pytest.param("kernel/loop.py", "from simpy.core import Environment", id="simpy in the compiled engine"),
        pytest.param("sim/engine.py", "import numba", id="numba outside the compiled engine"),
        pytest.param("spec/a.py", "import pydantic", id="pydantic outside scenario"),
        pytest.param("report/a.py", "import click", id="click outside the command line"),
        pytest.param("experiments/a.py", "def f():\n    import onnxruntime", id="ONNX Runtime outside live"),
        pytest.param("new/__init__.py", "", id="a package without a layer"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, module: str, text: str) -> None:
    outcome = lint_imports(package(tmp_path, {module: text}))

    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert "1 broken" in outcome.stdout


def impure_imports(text: str) -> set[str]:
    """Return the top-level names imported by a module that bring a clock, I/O, draws or an engine."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
            names |= {alias.name for alias in node.names if node.module == "numpy"}
    return names & IMPURE


def test_impure_imports_are_seen() -> None:
    assert impure_imports("import os.path\nfrom time import time\ndef f():\n    from numpy import random") == {
        "os",
        "time",
        "random",
    }
    assert impure_imports("from __future__ import annotations\nfrom htpsim.errors import CapacityError") == set()


@pytest.mark.parametrize("name", PURE)
def test_rules_have_no_clock_no_files_no_draws(name: str) -> None:
    modules = sorted((ROOT / "htpsim" / name).rglob("*.py"))

    found = {str(path.relative_to(ROOT)): impure_imports(path.read_text(encoding="utf-8")) for path in modules}

    assert modules
    assert {path: names for path, names in found.items() if names} == {}


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    heavy = {"jinja2", "joblib", "matplotlib", "numba", "onnx", "onnxruntime", "pandas", "pydantic", "scipy", "simpy"}
    program = "import sys, htpsim.cli; print(*{name.split('.')[0] for name in sys.modules})"

    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "htpsim" in outcome.stdout.split()
    assert heavy & set(outcome.stdout.split()) == set()


def test_the_installed_command_is_there() -> None:
    command = shutil.which("htpsim", path=str(Path(sys.executable).parent))

    assert command is not None, "htpsim is not installed in this environment; run `make venv`"
