"""Every order in which threads can take their steps where a guard lets one of them through at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

ACQUIRE, RELEASE = "acquire", "release"

Step = tuple[str, str]
"""(thread, what it does)"""


def orders(threads: dict[str, Sequence[str]], slots: int = 1) -> Iterator[tuple[Step, ...]]:
    """Yield every order of the threads' steps in which at most `slots` are between ACQUIRE and RELEASE.

    >>> len(list(orders({"a": ["x", "y"], "b": ["z"]}))), len(list(orders({"a": [ACQUIRE, RELEASE], "b": [ACQUIRE]})))
    (3, 1)
    """
    if not any(threads.values()):
        yield ()
        return
    for thread, steps in threads.items():
        if not steps:
            continue
        inside = slots - 1 if steps[0] == ACQUIRE else slots + 1 if steps[0] == RELEASE else slots
        if inside >= 0:
            for rest in orders(threads | {thread: steps[1:]}, inside):
                yield ((thread, steps[0]), *rest)
