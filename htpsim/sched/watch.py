"""A user's policy under watch: whatever it does wrong becomes an error that names it and the function.

The built-in policies are not watched, their own tests are; so this costs nothing where it is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from htpsim.errors import InvariantError
from htpsim.sched.policy import Policy, Records


def watched(policy: type[Policy]) -> type[Policy]:
    """Return a policy that does as `policy` does and reports its faults as InvariantError.

    A fault is an exception, a ``pick`` that is no whole number, a ``timer`` that asks for an instant not after now.
    (A ``pick`` of somebody not waiting is found by the guard, a policy that never grants by the engine.)

    >>> from htpsim.sched import Fifo
    >>> class Lost(Fifo):
    ...     name = "lost"
    ...
    ...     @staticmethod
    ...     def pick(lane, accounts, now_ns):
    ...         return None
    >>> watched(Lost).pick(None, [], 7)
    Traceback (most recent call last):
    htpsim.errors.InvariantError: policy lost: pick returned None at 7 ns, expected the number of an account, or -1 ...
    """
    functions = {
        "wake": _reported(policy, "wake", policy.wake, _anything),
        "pick": _reported(policy, "pick", policy.pick, _whole),
        "charge": _reported(policy, "charge", policy.charge, _anything),
        "timer": _reported(policy, "timer", policy.timer, _later),
    }
    return type(policy.__name__, (policy,), {name: staticmethod(f) for name, f in functions.items()})


def _anything(answer: object, now_ns: int) -> str:
    """Accept any answer."""
    return ""


def _whole(answer: object, now_ns: int) -> str:
    return "" if _is_whole(answer) else "expected the number of an account, or -1 for nobody yet"


def _later(answer: Any, now_ns: int) -> str:
    if _is_whole(answer) and (answer == -1 or answer > now_ns):
        return ""
    return "expected a later instant in ns, or -1 for none"


def _is_whole(answer: object) -> bool:
    return hasattr(answer, "__index__") and not isinstance(answer, bool)


def _reported(
    policy: type[Policy], name: str, function: Callable[..., Any], fault: Callable[[Any, int], str]
) -> Callable[..., Any]:
    def report(lane: Any, accounts: Records, *rest: int) -> Any:
        try:
            answer = function(lane, accounts, *rest)
        except Exception as error:  # a user's function may raise anything
            _raise_from(policy, name, rest[-1], error)
        wrong = fault(answer, rest[-1])
        if wrong:
            raise InvariantError(f"policy {policy.name}: {name} returned {answer!r} at {rest[-1]} ns, {wrong}")
        return answer

    return report


def _raise_from(policy: type[Policy], name: str, now_ns: int, error: Exception) -> NoReturn:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})" if trace is not None else ""
    raise InvariantError(
        f"policy {policy.name}: {name} raised {type(error).__name__} at {now_ns} ns: {error}{where}"
    ) from error
