"""The one layout of what a run leaves behind: a row a graphExecute, a row a request, rows of loading and memory.

Both engines fill these columns; everything that reports, checks or plots reads them and nothing else. All
values are integers. ``NEVER`` stands for an instant that was not reached before the run ended.
"""

from __future__ import annotations

from typing import Final, NamedTuple

NEVER: Final = -1

STAGES: Final = ("vit", "prefill", "decode", "job")
STAGE_VIT, STAGE_PREFILL, STAGE_DECODE, STAGE_JOB = range(4)

PATHS: Final = ("genie", "qnn", "bypass")
"""``bypass`` is a call on path genie that carried no handle and so went past the guard."""
PATH_GENIE, PATH_QNN, PATH_BYPASS = range(3)

REQUEST_STATES: Final = ("queued", "running", "done", "dropped", "refused")
QUEUED, RUNNING, DONE, DROPPED, REFUSED = range(5)


class Execute(NamedTuple):
    """One graphExecute. Its parts sum exactly: ``returned_ns - called_ns`` is the sum of `PARTS`."""

    execute: int
    """number of the graphExecute, in order of the calls"""
    client: int
    """index of the instance or other client"""
    request: int
    """number of the request among the client's arrivals"""
    stage: int
    """index in STAGES"""
    step: int
    """image, prefill chunk or decode token within the request, from 0"""
    graph: int
    """index in RunLog.graphs"""
    copy: int
    """loaded context it ran on: index in RunLog.copies"""
    core: int
    """core it ran on (first core of a gang)"""
    path: int
    """index in PATHS"""
    level: int
    """QNN priority level after clamping"""
    weight: int
    """weight the guard charged it with; 0 on the other paths"""
    account: int
    """guard account charged (index in RunLog.accounts); -1 on the other paths"""
    token: int
    """number of the token its return yields (0: the first), or -1"""
    called_ns: int
    """thread called graphExecute"""
    granted_ns: int
    """guard granted; equals called_ns on the other paths"""
    submitted_ns: int
    """entered the context's FIFO on the device"""
    started_ns: int
    """core began it (VTCM acquire included)"""
    finished_ns: int
    """core finished it"""
    returned_ns: int
    """thread got it back"""
    released_ns: int
    """guard was released; equals returned_ns unless a gap or a request holds it"""
    guard_wait_ns: int
    """waiting for the guard: granted - called; 0 on the other paths"""
    guard_overhead_ns: int
    """what the guard itself takes"""
    rpc_ns: int
    """from the host to the device, adapter and graph switches included"""
    device_wait_ns: int
    """waiting on the device: (started - submitted) + time waiting while evicted"""
    acquire_ns: int
    """power-up, VTCM acquire, and what a context's first call takes besides"""
    run_ns: int
    """running, at whatever speed; `solo_ns` at full speed"""
    evict_ns: int
    """being evicted, each time"""
    restore_ns: int
    """being restored, each time"""
    rpc_return_ns: int
    """from the device to the host, waking it included"""
    evictions: int
    """times it yielded the core and came back"""
    solo_ns: int
    """time it would have run alone: the drawn service time"""


PARTS: Final = (
    "guard_wait_ns", "guard_overhead_ns", "rpc_ns", "device_wait_ns", "acquire_ns",
    "run_ns", "evict_ns", "restore_ns", "rpc_return_ns",
)  # fmt: skip
"""The parts of a graphExecute; they sum to returned_ns - called_ns."""


class Request(NamedTuple):
    """One request of an instance, or one job of another client."""

    client: int
    """index of the instance or other client"""
    request: int
    """number among the client's arrivals"""
    state: int
    """index in REQUEST_STATES: where it stood when the run ended"""
    arrived_ns: int
    """it arrived; TTFT counts from here"""
    begun_ns: int
    """thread took it up"""
    vit_done_ns: int
    """last ViT graph returned; NEVER without images"""
    first_token_ns: int
    """first token; NEVER for a job"""
    done_ns: int
    """last token, or end of the job"""
    images: int
    """images it brings"""
    prompt_tokens: int
    """tokens to prefill: text and images"""
    output_tokens: int
    """tokens asked for"""
    tokens: int
    """tokens yielded so far"""
    turn: int
    """turn of its dialog, from 0"""


class Slice(NamedTuple):
    """A stretch of one graphExecute on its core, recorded for those that were evicted at least once.

    A log has them in order of graphExecute, begin, end and kind.
    """

    execute: int
    """number of the graphExecute"""
    kind: int
    """index in SLICES: what it was about"""
    start_ns: int
    """the stretch began"""
    end_ns: int
    """the stretch ended"""


SLICES: Final = ("acquire", "run", "evict", "restore")


class MemoryEvent(NamedTuple):
    """Bytes taken (positive) or given back in one ledger."""

    time_ns: int
    """when"""
    ledger: str
    """"device", "host" or "pd"."""
    place: str
    """"dram", "host", or the protection domain, such as "process 0 core 1 pd 0"."""
    item: str
    """what holds the bytes: a loaded context, an instance's I/O or KV cache"""
    delta_bytes: int
    """bytes taken, or given back (negative)"""


class Load(NamedTuple):
    """One instance obtaining one model."""

    client: int
    """index of the instance or other client"""
    model: str
    """what it obtained"""
    role: str
    """"owner" (loaded it), "borrower" (found it in the registry) or "failed"."""
    copy: str
    """name of the copy used"""
    core: int
    """core the copy is on"""
    start_ns: int
    """the load was asked for"""
    end_ns: int
    """the model was there, or the load had failed"""
    message: str
    """for a failure: the limit, what was asked, held and free"""


class Copy(NamedTuple):
    """One loaded context."""

    name: str
    """name of the copy and of the context in it, such as "llm of process 0 core 0/part1"."""
    model: str
    """model it belongs to"""
    context: str
    """context binary it was loaded from"""
    role: str
    """"vit", "llm" or "other"."""
    process: int
    """process it was loaded in"""
    core: int
    """core it is on"""
    reserved_bytes: int
    """bytes that it and the I/O of its users reserve when the run ends; 0 once it is unloaded"""
    users: int
    """instances and clients that use it when the run ends"""

    @property
    def whole(self) -> str:
        """Name of the copy alone, such as "llm of process 0 core 0"."""
        return self.name[: -len(self.context) - 1]
