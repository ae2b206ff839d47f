"""An HTP core as a thread: bound to one processor, it runs one graph at a time, by QNN priority, then first come.

It never interrupts a graph. Whoever changes what the core should run decides, under its lock, and notes the instant: a
submission to an idle core, or the end of the graph before. The graph has the core from that decision on; what it takes
until the thread really begins counts as acquiring it. Of one loaded context only the oldest call can be chosen.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from htpsim.live.machine import bind, sharpen_timers
from htpsim.live.stopping import Clock, Stop, Stopped
from htpsim.results.columns import NEVER


class Job:
    """One graphExecute on its way through the device; a thread uses the same one again and again."""

    __slots__ = (
        "began_ns", "context", "done", "error", "finished_ns", "level", "number", "started_ns",
        "submitted_ns", "wanted_ns", "work",
    )  # fmt: skip

    def __init__(self) -> None:
        self.number = NEVER
        self.context = NEVER
        self.level = 0
        self.wanted_ns = 0
        self.work: Callable[[int], None] = _nothing
        self.submitted_ns = self.started_ns = self.began_ns = self.finished_ns = NEVER
        self.error: BaseException | None = None
        self.done = threading.Lock()
        """held until the graph has finished"""
        self.done.acquire()

    def clear(self, number: int) -> None:
        """Make it the next graphExecute of its thread."""
        self.number = number
        self.submitted_ns = self.started_ns = self.began_ns = self.finished_ns = NEVER
        self.error = None

    def order(self) -> tuple[int, int, int]:
        """Return its place among the clients of a core."""
        return -self.level, self.submitted_ns, self.number


def _nothing(wanted_ns: int) -> None:
    """Do no work."""


class LiveCore(threading.Thread):
    """One HTP core.

    Parameters
    ----------
    number : int
        Its number on the device.
    processor : int
        The processor that it takes.
    """

    def __init__(self, number: int, processor: int, clock: Clock, stop: Stop) -> None:
        super().__init__(name=f"htp core {number}", daemon=True)
        self.number = number
        self.processor = processor
        self.clock = clock
        self.stop = stop
        self.lock = threading.Lock()
        self.given = threading.Condition(self.lock)
        self.queues: dict[int, deque[Job]] = {}
        """waiting calls by context, oldest first"""
        self.current: Job | None = None
        self.fault: BaseException | None = None
        """why the thread itself ended, if it did"""
        stop.on_raise(self._wake)

    def submit(self, job: Job) -> None:
        """Hand a graph to the core."""
        with self.lock:
            self.stop.check()
            now_ns = self.clock()
            job.submitted_ns = now_ns
            self.queues.setdefault(job.context, deque()).append(job)
            if self.current is None:
                self._dispatch(now_ns)
                self.given.notify()

    def choose(self) -> Job | None:
        """Return the graph that goes next: the first of the oldest of each context, by priority, then by arrival."""
        heads = [queue[0] for queue in self.queues.values() if queue]
        return min(heads, key=Job.order) if heads else None

    def _dispatch(self, now_ns: int) -> None:
        job = self.choose()
        if job is not None:
            self.queues[job.context].popleft()
            job.started_ns = now_ns
        self.current = job

    def wait(self, job: Job) -> None:
        """Wait until a graph that was handed over has finished."""
        job.done.acquire()

    def run(self) -> None:
        """Run what is handed over until the run is stopped."""
        try:
            bind((self.processor,))
            sharpen_timers()
            while True:
                self._execute(self._next())
        except Stopped:
            pass
        except BaseException as error:
            self.fault = error
            self.stop.raise_()
        finally:
            self._let_go()

    def _next(self) -> Job:
        with self.lock:
            while True:
                self.stop.check()
                if self.current is not None:
                    return self.current
                self.given.wait()

    def _execute(self, job: Job) -> None:
        job.began_ns = self.clock()
        try:
            job.work(job.wanted_ns)
        except Exception as error:
            job.error = error
        with self.lock:
            now_ns = self.clock()
            job.finished_ns = now_ns
            self._dispatch(now_ns)
        job.done.release()

    def _let_go(self) -> None:
        """Let threads go on whose graphs will not run any more."""
        with self.lock:
            left = [job for queue in self.queues.values() for job in queue]
            left += [self.current] if self.current is not None else []
            self.queues.clear()
            self.current = None
        for job in left:
            job.error = Stopped()
            job.done.release()

    def _wake(self) -> None:
        with self.lock:
            self.given.notify_all()

    def idle(self) -> bool:
        """Tell whether nothing runs or waits."""
        with self.lock:
            return self.current is None and not any(self.queues.values())

    def end(self, limit_s: float = 5.0) -> bool:
        """Wait for the thread to end, which it does after the graph that runs; tell whether it has."""
        if self.ident is not None:
            self.join(limit_s)
        return not self.is_alive()
