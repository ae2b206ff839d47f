"""What theory knows about queues and schedules, and the command that holds the simulator to it."""

from htpsim.experiments.theory.validate import ORACLES, Oracle, OracleResult, judge, validate

__all__ = ["ORACLES", "Oracle", "OracleResult", "judge", "validate"]
