"""The policy interface: what decides who is granted next when a guard has a free slot.

A policy is a stateless class of four static functions and three tables. Its state lives in two kinds of records,
both of plain int64 fields, so the same text runs on Python objects and, compiled, on record arrays:

- a *lane*: one set of slots with its own clock. A guard has one lane, or one a core where slots are counted a core.
- an *account* in a lane: one dialog handle with its weight. Its calls queue in order; ``waiting`` is 1 while it has
  one, and its tags belong to the oldest of them, its *head*.

==========  =====================================================================================================
``wake``    account `i` has a new head (called, or the previous head was granted): tag it.
``pick``    a slot is free and somebody waits: return the account whose head is granted, or -1 for nobody yet. A
            returned account *is* granted, so this is also where a policy advances its clock.
``charge``  a call of account `i` released its slot after `cost_ns` of core occupancy.
``timer``   the instant asked for has come: return the next one, in ns, or -1 for none. Called once at time 0.
==========  =====================================================================================================

The tables: ``params`` (name -> (default, text); set on the lane), ``lane_fields``, ``account_fields`` (start at 0),
and, if wanted, ``limits`` (name -> (least, greatest) a parameter may be).
A function may use integers, comparisons and loops only: no allocation, no floats, no state of its own. It may call
module-level functions of the same kind.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

LANE_FIELDS = ("slots", "holders", "waiting", "weight_sum", "accounts")
"""``slots`` may hold at once, ``holders`` do, ``waiting`` accounts have a head; sum of weights; number of accounts."""

ACCOUNT_FIELDS = ("weight", "priority", "waiting", "called_ns", "deadline_ns", "head", "tail", "held", "charged_ns")
"""Weight and rank as registered; head's call time and deadline; first and last waiting call; slots held; cost charged
so far."""

CALL_FIELDS = ("next_call", "call_ns", "deadline_ns")
"""What a guard keeps in a call's record: the next waiting call of its account, when it was made, and by when its
thread wants it done (set by the engine before the call; NO_DEADLINE if it does not say)."""

NO_DEADLINE = 1 << 62
"""Later than any deadline."""

HOUR_NS = 3_600 * 10**9
"""The most a parameter that is a time may be."""

VIRTUAL_SCALE = 16
"""Virtual times are integers scaled by 2^16."""

VIRTUAL_FAR = 1 << 60
"""A virtual time from which it is taken off all tags, so that none ever leaves 64 bits."""

LONGEST_NS = 1 << 42
"""The most device time that one call is charged for, 73 minutes, where a charge is scaled."""

Records = Any
"""A sequence of records: a list of slotted objects, or a NumPy record array."""


class Policy(Protocol):
    """What a policy class offers; see the module's text."""

    name: ClassVar[str]
    params: ClassVar[dict[str, tuple[int, str]]]
    lane_fields: ClassVar[tuple[str, ...]]
    account_fields: ClassVar[tuple[str, ...]]

    @staticmethod
    def wake(lane: Any, accounts: Records, i: int, now_ns: int) -> None:
        """Tag the new head of account `i`."""

    @staticmethod
    def pick(lane: Any, accounts: Records, now_ns: int) -> int:
        """Return the account to grant, or -1."""

    @staticmethod
    def charge(lane: Any, accounts: Records, i: int, cost_ns: int, now_ns: int) -> None:
        """Charge account `i`."""

    @staticmethod
    def timer(lane: Any, accounts: Records, now_ns: int) -> int:
        """Do what is due and return the next instant wanted, or -1."""
