"""Whatever is given, calibrate and score either work or refuse in words; a scenario that is made can be loaded."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htpsim.errors import HtpsimError
from htpsim.experiments.calibrate import calibrate
from htpsim.experiments.score import score
from tests.calibrate.support import CASES, EXAMPLES, FIXTURES, VerboseLog

REAL = sorted(path for path in CASES.glob("*/*") if path.is_file())
needs_files = pytest.mark.skipif(not REAL, reason="the folder of real files (shared/cases) is not beside this one")

LOG = (EXAMPLES / "genie_verbose.log").read_text(encoding="utf-8").splitlines()
PROFILE = (EXAMPLES / "vit_profile.csv").read_text(encoding="utf-8").splitlines()


def outcome(path: Path, *, as_vit: bool = False) -> str:
    """Calibrate from one file and check what comes out; return what happened."""
    try:
        found = calibrate([], vit=path) if as_vit else calibrate(path)
        found.check()
    except HtpsimError as error:
        return "refused" if str(error).strip() else "refused without a word"
    assert found.values
    for key, leaf in found.values:
        assert leaf.source.strip(), key
        assert leaf.mark in ("measured", "derived", "assumed"), key
    return "calibrated"


@pytest.mark.slow
def test_every_fixture_is_calibrated_or_refused() -> None:
    happened = Counter(outcome(path) for path in sorted(FIXTURES.iterdir()))

    assert happened["calibrated"] >= 15, happened
    assert happened["refused"] >= 10, happened


@pytest.mark.verify
@needs_files
def test_every_real_file_is_calibrated_or_refused() -> None:
    happened = Counter(outcome(path, as_vit=as_vit) for path in REAL for as_vit in (False, True))

    print(happened)
    assert happened["calibrated"] >= 25, happened


@pytest.mark.verify
@needs_files
def test_every_real_file_is_scored_or_refused() -> None:
    for path in REAL:
        try:
            found = score(path, path, within=0.0)
        except HtpsimError:
            continue
        assert found.ok, path


def mutated(lines: list[str], seed: int) -> str:
    """Damage a text as transfers and editors do: lines lost, doubled, swapped, cut, digits changed."""
    draw = random.Random(seed)
    kept = list(lines)
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(kept))
        how = draw.randrange(6)
        if how == 0:
            del kept[at : at + draw.randint(1, 30)]
        elif how == 1:
            kept.insert(at, kept[draw.randrange(len(kept))])
        elif how == 2:
            kept[at] = kept[at][: draw.randrange(len(kept[at]) + 1)]
        elif how == 3:
            kept[at] = "".join(draw.choice("0123456789") if c.isdigit() else c for c in kept[at])
        elif how == 4:
            kept[at] = kept[at].replace("1", "-1").replace("us", "ms")
        else:
            kept = kept[: max(1, at)]
        kept = kept or [""]
    return "\n".join(kept)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [LOG, PROFILE], ids=["log", "profile"])
def test_damaged_files_are_calibrated_or_refused(tmp_path: Path, lines: list[str]) -> None:
    happened: Counter[str] = Counter()
    for seed in range(4):
        path = tmp_path / f"damaged{seed}"
        path.write_text(mutated(lines, seed), encoding="utf-8")
        happened[outcome(path)] += 1

    assert happened["calibrated"] >= 1, happened
    assert happened["calibrated"] + happened["refused"] == 4, happened


@pytest.mark.verify
@pytest.mark.parametrize("lines", [LOG, PROFILE], ids=["log", "profile"])
def test_many_damaged_files_are_calibrated_or_refused(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "damaged"
    for seed in range(1000, 1200):
        path.write_text(mutated(lines, seed), encoding="utf-8")
        assert outcome(path) in ("calibrated", "refused"), seed


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_noise_is_refused(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("noise") / "file"
    path.write_bytes(noise)

    assert outcome(path) == "refused"


def test_a_log_of_one_step_is_no_model(tmp_path: Path) -> None:
    log = VerboseLog(tiers=((128, 1, 70),), chunks=1)

    assert outcome(log.write(tmp_path)) == "calibrated"
    assert outcome(VerboseLog(tiers=((128, 0, 70),)).write(tmp_path)) == "refused"
