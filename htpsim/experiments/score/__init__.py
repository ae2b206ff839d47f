"""Score a simulation against a measurement, by figures that both can give."""

from htpsim.experiments.score.scoring import Compared, Score, score

__all__ = ["Compared", "Score", "score"]
