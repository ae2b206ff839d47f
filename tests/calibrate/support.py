"""What the tests of calibration share: files in the formats of the real tools, made from numbers that are known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "calibrating"
CASES = ROOT / ".." / "shared" / "cases"
REAL_LOG = CASES / "genie-console" / "01-specula-npu-genie-ac-verbose.log"
FIXTURES = ROOT / "tests" / "fixtures" / "formats"

TENTH = 100_000
"""Resolution of such a log's clock [ns]."""


@dataclass
class VerboseLog:
    """A verbose Genie log of one prompt: every execution's length [0.1 ms] is drawn from what is asked for."""

    seed: int = 1
    parts: int = 2
    ar: int = 32
    chunks: int = 3
    tiers: Sequence[tuple[int, int, int]] = ((128, 60, 70), (256, 60, 80))
    """Context length, decode steps, and about how long a graph takes [0.1 ms]."""

    gap_graph: Sequence[int] = (0, 1, 1, 2)
    gap_step: Sequence[int] = (3, 4, 5)
    soc: int = 88
    lines: list[str] = field(default_factory=list)
    handles: dict[str, int] = field(default_factory=dict)
    executions: list[tuple[str, int]] = field(default_factory=list)
    """Graph and length [ns], as written."""

    def text(self) -> str:
        draw = random.Random(self.seed)
        self.lines = ["Using libGenie.so version 1.17.0"]
        for length, _, _ in self.tiers:
            for tokens, kind in ((1, "token"), (self.ar, "prompt")):
                for part in range(self.parts):
                    name = f"{kind}_ar{tokens}_cl{length}_{part + 1}_of_{self.parts}"
                    self._say(110, f"Inserting graph {name} as idx {part} for AR-{tokens} CL-{length}", "")
        self._say(120, f"Key: soc_model, Value: {self.soc}", "")
        self._say(120, "Key: dsp_arch, Value: 81", "")
        self._say(120, "Key: core_id, Value: 0", "")
        now = 10_000
        for _ in range(self.chunks):
            for part in range(self.parts):
                name = f"prompt_ar{self.ar}_cl{self.tiers[0][0]}_{part + 1}_of_{self.parts}"
                now = self._execute(now, name, draw.randint(100, 110)) + draw.choice(self.gap_graph)
        for length, steps, about in self.tiers:
            for _ in range(steps):
                now += draw.choice(self.gap_step)
                for part in range(self.parts):
                    name = f"token_ar1_cl{length}_{part + 1}_of_{self.parts}"
                    now = self._execute(now, name, draw.randint(about - 10, about + 10))
                    now += draw.choice(self.gap_graph) if part + 1 < self.parts else 0
        return "\n".join(self.lines) + "\n"

    def _say(self, at: int, text: str, level: str = " <I> ") -> None:
        self.lines.append(f"Genie: {at // 10:7}.{at % 10}ms [  INFO ] {level}{text}")

    def _execute(self, at: int, graph: str, tenths: int) -> int:
        handle = hex(self.handles.setdefault(graph, len(self.handles) + 1))
        self._say(at, f"QnnGraph_execute started. graph = {handle}")
        self._say(at + tenths, f"Graph {graph} execution finished with result 0")
        self.executions.append((graph, tenths * TENTH))
        return at + tenths

    def write(self, folder: Path, name: str = "verbose.log") -> Path:
        path = folder / name
        path.write_text(self.text(), encoding="utf-8")
        return path


def csv_profile(path: Path, times_us: Sequence[int], graph: str = "vit", *, detailed: bool = False) -> Path:
    """Write a profiling CSV with one execution a time."""
    rows = []
    for stamp, time_us in enumerate(times_us, start=1):
        rows.append(f"{stamp},EXECUTE,{time_us + 300},US,NETRUN,ROOT,Graph 0: {graph}")
        rows.append(f"{stamp},EXECUTE,{time_us},US,BACKEND,ROOT,Accelerator (execute) time")
        if detailed:
            rows.append(f"{stamp},EXECUTE,7492,CYCLES,BACKEND,SUB-EVENT,MatMul:OpId_1 (cycles)")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def viewer_text(path: Path, average_us: int, ips: float) -> Path:
    """Write a viewer's text of one graph."""
    path.write_text(
        "Execute Stats (Average):\n------------------------\nGraph 0 (vit):\n"
        f"    NetRun: {average_us} us\n    Backend (Accelerator (execute) time): {average_us - 100} us\n\n"
        "Execute Stats (Overall):\n------------------------\n"
        f"    NetRun IPS (includes IO and misc. time): {ips} inf/sec\n",
        encoding="utf-8",
    )
    return path
