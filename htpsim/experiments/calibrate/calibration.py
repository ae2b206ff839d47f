"""From files to a calibrated scenario: `calibrate`, and what it returns."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from htpsim.errors import FormatError, HtpsimError, unknown_name
from htpsim.experiments.calibrate import configs, console, profiles, published
from htpsim.experiments.calibrate.build import build
from htpsim.experiments.calibrate.document import leaves, toml_text
from htpsim.experiments.calibrate.evidence import Evidence, Role
from htpsim.experiments.calibrate.leaf import Asked, Leaf
from htpsim.experiments.calibrate.service import METHODS, STATISTICS, Method
from htpsim.formats import FORMATS, Report, read
from htpsim.formats.writers.whole import whole_file
from htpsim.scenario import ScenarioFile, load

INSTANCES_MAX: Final = 1000

Path_ = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A scenario made from files, each value with its source, and what a reader should know of it."""

    files: tuple[str, ...]
    tree: dict[str, Any]
    """Tables whose leaves are plain values, or values with their source."""

    warnings: tuple[str, ...]
    heading: tuple[str, ...] = ()
    """Lines on top of the file; by default what it was calibrated from."""

    @property
    def values(self) -> tuple[tuple[str, Leaf], ...]:
        """Every calibrated value with its dotted key, in the order of the file."""
        return tuple(leaves(self.tree))

    def to_toml(self) -> str:
        """Return the scenario file's text; the same files give the same text."""
        head = [
            *(self.heading or (f"Written by htpsim calibrate from {', '.join(self.files)}.",)),
            "Every figure names where it stands; what is not here is a default of htpsim, and `htpsim run` lists those "
            "that are assumed.",
            *(f"! {warning}" for warning in self.warnings),
        ]
        return toml_text(self.tree, head)

    def to_dict(self) -> dict[str, Any]:
        """Return the values and warnings in JSON form."""
        return {
            "files": list(self.files),
            "values": [
                {"key": key, "value": leaf.value, "mark": leaf.mark, "n": leaf.n, "source": leaf.source}
                for key, leaf in self.values
            ],
            "warnings": list(self.warnings),
        }

    def check(self) -> None:
        """Make sure that what the files amount to is a valid scenario; raises as :meth:`write` does."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder) / "model.toml")

    def write(self, path: Path_) -> ScenarioFile:
        """Write the scenario file, whole or not at all, and return it loaded.

        Raises
        ------
        HtpsimError
            When what the files amount to is no valid scenario; nothing is written then.
        """
        with whole_file(path) as unfinished:
            unfinished.write_text(self.to_toml(), encoding="utf-8", newline="\n")
            try:
                load(unfinished)
            except HtpsimError as error:
                text = str(error).replace(str(unfinished), os.fspath(path))
                raise HtpsimError(f"{text}\ncalibrate: the files make no scenario; nothing was written") from error
        return load(path)

    def __repr__(self) -> str:
        return f"<Calibration from {len(self.files)} files: {len(self.values)} values, {len(self.warnings)} warnings>"


def calibrate(  # noqa: PLR0913 - all but the first have a name and a default
    files: Path_ | Sequence[Path_],
    *,
    vit: Path_ | Sequence[Path_] = (),
    instances: int = 1,
    sizes: Path_ | None = None,
    nbytes: Sequence[str] = (),
    image_tokens: int | None = None,
    as_recorded: bool = False,
    method: str = "auto",
    statistic: str = "average",
    component: str | None = None,
    device: str | None = None,
    runtime: str | None = None,
    precision: str | None = None,
) -> Calibration:
    """Make a scenario from what is on the user's disk: profiles, console logs, configurations, published tables.

    Parameters
    ----------
    files
        Files of any format that holds times, memory or configuration; their content decides what each is. Graphs
        whose names say so are the LLM's; all others are those of another client.
    vit
        Profiles of the ViT: their graphs are the ViT's. A legacy ViT is in no genie_config, so it comes this way.
    instances
        How many VLMs the scenario has.
    sizes
        A small TOML table of bytes that no log states: ``[vit] weights = "406MiB"``, ``[llm.part0] file = "1GB"``.
    nbytes
        The same, one assignment each: ``"vit.weights=406MiB"``.
    image_tokens
        Prompt tokens that one image becomes.
    as_recorded
        Make the scenario of the one run that a verbose log records, to hold it to the log: one instance of the LLM,
        the log's prompt, once.
    method
        How a service time is modelled: "auto", "constant", "sample" or "fit"; see ``service``.
    statistic
        What a constant is: "average" or "median".
    component, device, runtime, precision
        Which row of a perf.yaml, as far as it leaves a choice.

    Raises
    ------
    HtpsimError
        When a file cannot be read, holds nothing to calibrate from, or files are of different chips.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "profile.csv")
    ...     rows = [f"EXECUTE,{us},US,NETRUN,ROOT,Graph 0: vit" for us in (2952, 2949, 2950, 2951, 2950)]
    ...     _ = path.write_text("\\n".join(rows) + "\\n")
    ...     found = calibrate([], vit=path, nbytes=["vit.weights=406MiB"], instances=2)
    >>> [(key, leaf.value, leaf.n) for key, leaf in found.values]
    [('models.vit.contexts.vit.weights', '406MiB', None), ('models.vit.graphs.vit.service', '2.9504ms', 5)]
    """
    asked = _asked(method, statistic, instances)
    asked = replace(asked, image_tokens=image_tokens, as_recorded=as_recorded)
    choice = published.Choice(component=component, device=device, runtime=runtime, precision=precision)
    evidence = Evidence()
    for role, given in (("other", _listed(files)), ("vit", _listed(vit))):
        for path in given:
            report = read(path)
            evidence.files.append(Path(path).name)
            _take(report, cast(Role, role), choice, evidence)
    configs.take_sizes(sizes, nbytes, evidence)
    return Calibration(tuple(evidence.files), build(evidence, asked), tuple(evidence.warnings))


def _asked(method: str, statistic: str, instances: int) -> Asked:
    """Return what was asked, once it is known to be possible."""
    if method not in METHODS:
        raise HtpsimError(unknown_name("method", method, METHODS))
    if statistic not in STATISTICS:
        raise HtpsimError(unknown_name("statistic", statistic, STATISTICS))
    if not 1 <= instances <= INSTANCES_MAX:
        raise HtpsimError(f"instances: got {instances}, expected 1 to {INSTANCES_MAX}")
    return Asked(instances=instances, method=cast(Method, method), statistic=statistic)


def _listed(given: Path_ | Sequence[Path_]) -> list[Path_]:
    return [given] if isinstance(given, str | os.PathLike) else list(given)


def _take(report: Report, role: Role, choice: published.Choice, evidence: Evidence) -> None:
    """Take what one file holds."""
    takers: dict[str, Callable[[], None]] = {
        "genie-console": lambda: console.take(report, role, evidence),
        "qnn-csv": lambda: profiles.take_csv(report, role, evidence),
        "qnn-viewer": lambda: profiles.take_viewer(report, role, evidence),
        "qnn-trace": lambda: profiles.take_trace(report, role, evidence),
        "genie-profile": lambda: published.take_profile(report, evidence),
        "aihub-perf": lambda: published.take_perf(report, choice, role, evidence),
        "genie-config": lambda: configs.take_model(report, evidence),
        "htp-backend-ext": lambda: configs.take_device(report, evidence),
        "qnn-context-log": lambda: configs.take_generator(report, role, evidence),
        "qnn-context-info": lambda: configs.take_context(report, role, evidence),
    }
    if report.format not in takers and FORMATS[report.format].service_time is not None:
        profiles.take_other(report, role, evidence)
        return
    if report.format not in takers:
        raise FormatError(
            f"{report.path}: got a file of format {report.format}, expected one with times of graphs or a "
            f"configuration: {', '.join(takers)}"
        )
    takers[report.format]()
