"""The records the device rules read and write: device, core, context, graphExecute. All fields are int64."""

from __future__ import annotations

from typing import Any, Final

Records = Any
"""A sequence of records: a list of slotted objects, or a NumPy record array."""

NOBODY: Final = -1
NEVER: Final = -1

WORK_SCALE: Final = 20
"""Work left is counted in ns x 2^20, so that a bandwidth share can slow it in integers."""
FULL_RATE: Final = 1 << WORK_SCALE

(QUEUED, WAITING, ACQUIRING, RUNNING, EVICTING, RESTORING, DONE) = range(7)
STATE_NAMES: Final = ("queued", "waiting", "acquiring", "running", "evicting", "restoring", "done")

NO_DRAW: Final = -1
"""In place of a bandwidth: draws none."""

LATENCY, GRID = range(2)
"""Yield rules."""

DEVICE_FIELDS: Final = (
    "cores",
    "clients",  # how many entries of the client list are in use: the heads of the contexts
    "holders",  # how many entries of the holder list are in use: those of them that hold cores
    "evicted",  # how many entries of the evicted list are in use
    "gangs",  # 1 when any graph takes several cores
    "coexists",  # 1 when a non-QNN client may run beside a QNN graph
    "parallel",  # 1 when several QNN graphs may run on a core at once
    "parallel_rate",  # work a ns that each of them then does
    "vtcm_bytes",
    "hvx",
    "hmx",
    "yield_rule",
    "yield_latency_ns",
    "yield_interval_ns",
    "evict_ns",
    "restore_ns",
    "acquire_ns",
    "power_up_ns",
    "power_up_warm_ns",
    "powers",  # 1 when powering up takes time
    "idle_timeout_ns",
    "first_call_ns",
    "throttles",  # 1 when cores slow down
    "throttle_after_ns",
    "throttle_stretch",  # how long work takes on a throttled core, in 1/1000 of its time on a cool one
    "throttle_rest_ns",
    "rpc_return_ns",
    "rpc_polling_ns",  # NEVER: not modelled
    "rpc_wake_ns",
    "shares",  # 1 when DRAM bandwidth is modelled, or parallel graphs slow each other
    "bandwidth",  # bytes a second for all cores, background taken off; 0: no limit of its own
    "core_bandwidth",  # bytes a second for one core; 0: no limit of its own
    "tied",  # 1 when several timers are due at the next instant at which one is
    "stale",  # bit mask of the cores whose running set must be looked at again
    "rates_stale",  # 1 when a running set changed since rates were last shared out
    "taken",  # scratch of one pass over a core: how many clients are on it, and what together they take
    "taken_pd",
    "taken_qnn",
    "taken_level",  # of the QNN graphs; NOBODY where they differ
    "taken_vtcm_bytes",
    "taken_hvx",  # of those that are no QNN graphs
    "taken_hmx",
    "shared_hvx",  # of the QNN graphs: as many as the greatest takes
    "shared_hmx",
)

CORE_FIELDS: Final = (
    "others",  # clients of this core that are not QNN graphs
    "holder",  # a client that holds resources: the only one where only one can; NOBODY
    "held",  # clients holding resources
    "idle_since_ns",
    "busy_since_ns",  # since when it has been held without a break
    "busy_ns",  # for how long it was held before that, since it was cool
    "cold",  # 1 until something first ran
)

CONTEXT_FIELDS: Final = (
    "head",
    "tail",
    "warm",  # 1 when a graphExecute of it has finished
)
"""One FIFO a loaded context: its oldest graphExecute and its youngest."""

JOB_FIELDS: Final = (
    "execute",  # number of the graphExecute: the last tie-break
    "context",
    "core",  # the core it takes, or the first of several
    "cores",  # bit mask of the cores it takes
    "width",  # how many those are
    "level",
    "pd",
    "qnn",
    "vtcm_bytes",
    "hvx",
    "hmx",
    "work",  # solo time in ns x 2^20
    "demand",  # DRAM bytes a second it asks for at full rate; 0: none
    "first",  # 1 when none of its context finished before it
    "next_in_context",
    "client_at",  # its place in the client list
    "holder_at",  # its place in the holder list
    "state",
    "arrival_ns",
    "started_ns",
    "finished_ns",
    "since_ns",  # beginning of the present state
    "left",  # work left
    "rate",  # work done a ns: 2^20 at full rate
    "top",  # the rate it would have with all the bandwidth it asks for
    "share",  # bandwidth that gives it this rate, or NO_DRAW before there is any
    "settled_ns",  # instant up to which `left` is right
    "timer_ns",  # when the device must look at it next; NEVER for not at all
    "yield_asked",
    "yield_ns",  # latency rule: when it yields
    "yield_work",  # grid rule: work done at which it yields
    "yield_due",  # 1 when it leaves in this instant, unless it is admitted again
    "ran_from_ns",  # beginning of the stretch of work that its latest yield ended
    "admitted",  # bit mask of the cores whose running set it belongs to
    "seen",  # scratch of one pass over the clients
    "cap",  # scratch: bandwidth it may draw
    "wait_ns",
    "acquired_ns",
    "run_ns",
    "evict_ns",
    "restore_ns",
    "evictions",
)
