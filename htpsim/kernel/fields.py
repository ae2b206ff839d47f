"""The records of the compiled engine beside those of the rules: all int64, one table of names each.

A *world* is all of them: ``w.jobs[j].work`` reads the same on lists of slotted objects, where the engine runs
interpreted, and on NumPy record arrays, where it runs compiled.
"""

from __future__ import annotations

from typing import Final

from htpsim.device.records import CONTEXT_FIELDS, CORE_FIELDS, DEVICE_FIELDS, JOB_FIELDS
from htpsim.memory.turns import TAKER_FIELDS, TURNS_FIELDS
from htpsim.results.columns import Execute, Request
from htpsim.sched.policy import CALL_FIELDS

STATE_FIELDS: Final = (
    "now_ns",
    "start_ns",  # the measured window begins after it
    "end_ns",
    "due_ns",  # when the device must be looked at next
    "due",  # whose timer that is
    "wanted",  # a bit each guard that may grant and each core to dispatch, in the order of their turns
    "guards",  # number of guards: the bit of the first core
    "queued",  # entries of the heap
    "pushed",  # events ever put into the heap: the last tie-break
    "returning",  # graphExecutes that return in this instant
    "first_start",  # threads that begin before anything else happens: the first
    "last_start",
    "executes",  # graphExecutes called so far
    "rows",
    "requests",
    "slices",
    "heap_room",
    "row_room",
    "request_room",
    "slice_room",
    "free_request",  # first place of a request that is over, where none is kept; NOBODY
    "keeps",  # 1: every row, request and slice is kept
    "stop",  # why the loop left, see STOPS
    "starved_user",  # whose jobs wait for a thread, where the loop left for want of one
    "clients",  # how many there are
    "loading",  # those whose loading has not ended
    "ready_ns",
    "per_core",
    "whole_request",
    "gap_inside",
    "covers_switches",  # 1: a slot is held for a switch of graphs or adapter, too
    "overhead_ns",
    "rpc_call_ns",
    "changes",  # 1: copies are unloaded and loaded again while the run goes on
    "to_load",  # clients that have not loaded, or failed to, where all wait for each other
    "asked",  # what the keeper of the copies is asked for, see ASKED
    "asking",  # the thread that asks, or the number of the keeper's own step
    "goes_on",  # the thread that goes on first when the loop is entered again; NOBODY
    "late_returns",  # 1: an answer takes its time to the host
    "alternates",  # 1: what shares DRAM with the cores comes and goes
    "next_bandwidth",  # the device's, when that changes next
    "next_ns",  # how long until then
    "after_next_ns",  # and until it changes back
)

(GOING, ENDED, ROOM, THREADS, FAULT, ASKS) = range(6)
"""Why the loop left: the horizon is reached; more room or more threads are needed; something the reference engine must
tell, because it has the words; the keeper of the copies is asked for something."""

(HOLD_VIT, HOLD_LLM, LEAVE_VIT, LEAVE_LLM, STEP) = range(5)
"""What it is asked for: to keep a copy in memory for a thread, or not any more; to do a step of its own."""

EVENT_FIELDS: Final = ("at_ns", "place", "number", "kind", "what")

(ARRIVES, RESUMES, SENT, RETURNED, RINGS, LOADS, READY, WEIGHS, ALTERNATES, BEGINS, KEEPS) = range(11)
"""Kinds of events: a request arrives; a thread goes on; a graphExecute reaches the device; it returns; a policy's
timer; a step of loading; a client has loaded; all have, so that weights are summed; what shares DRAM
with the cores comes or goes; a client begins that waited for others to load; a step of the keeper of the copies."""

JOB_OWN_FIELDS: Final = (
    "instance",  # 1: a VLM's
    "thread",
    "user",
    "graph",
    "path",
    "weight",
    "account",
    "lane",  # where it calls the guard; NOBODY past it
    "slot",  # its account's position in the lane
    "draw",
    "first_value",  # its table of times alone among the values
    "value_count",
    "first_demand",
    "request",  # number of the request
    "stage",
    "step",
    "token",
    "charged_weight",
    "charged_account",
    "solo_ns",
    "called_ns",
    "granted_ns",
    "submitted_ns",
    "overhead_ns",
    "switch_ns",  # time it first takes to switch graphs or adapter
    "held",  # 1: the thread releases the guard itself, later than the return
    "in_flight",
)
"""A job record belongs to one graph of one thread and serves all its graphExecutes, one at a time."""

JOBS: Final = (*JOB_FIELDS, *CALL_FIELDS, *JOB_OWN_FIELDS)

THREAD_FIELDS: Final = (
    "number",
    "user",
    "next_start",
    "next_free",
    "phase",
    "request",  # position of the request it serves
    "stage",
    "first",  # first job of the present step
    "last",  # how many follow it
    "k",  # which of them is under way
    "step",
    "token",
    "vit",  # first job of the ViT
    "vits",
    "prefill",
    "prefills",
    "decode",
    "decodes",
    "chunks",
    "idle",
    "kv_tokens",
    "turn",
    "token_ns",
    "deadline_ns",
    "executes",  # number of its latest graphExecute
    "offset_ns",  # what a closed loop waits before its first request
    "holds",  # 1: what it calls now keeps the guard
    "hold_call",  # the job that took the slot that is held; NOBODY
    "hold_cost_ns",
    "hold_row",  # the last row that waits for its release
    "second",  # 1: the ViT's own thread, beside that of the LLM
    "copy",  # whose turns it takes: of the copy that its LLM answers on; NOBODY where there are none
    "graphs",  # the set of graphs that it had switched to; NOBODY
    "switch_ns",  # a switch that its next graphExecute is to make
    "asked_ns",  # since when it waits for a turn
    "vit_ns",  # when the ViT of its request began: with its first call, or, on the host, with the request
    "in_dialog",  # 1: it holds the copy for the KV cache of a dialog that goes on
    *TAKER_FIELDS,
)

(THINKING, IDLE, CALLING, STEPPED, HOSTING, LINED_UP, SWITCHING, TAKING, HANDING, HELD, LEFT) = range(11)
"""What a thread does when it resumes: begins a request; takes one from the queue; calls; ends a step after its gap;
has run a graph on the host; has its turn at a copy; has switched graphs or adapter; is handed an encoded request; has
handed one over; holds a copy that it needs; has let go of one. The latter two are of its stage."""

USER_FIELDS: Final = (
    "instance",  # 1: a VLM, 0: another client
    "thread",  # its first thread
    "threads",
    "free",  # first thread that has nothing to do; NOBODY
    "limit",  # threads it may have at once; 0: no limit
    "drops",
    "loaded",
    "failed",
    "waits",  # 1: it has loaded, and waits for others
    "requests",
    "in_flight",
    "done",
    "dropped",
    "refused",
    "calls",  # what is tallied of its graphExecutes
    "device_ns",
    "guard_wait_ns",
    "device_wait_ns",
    "queue",  # first request that waits for a thread
    "queue_end",
    "queue_count",
    "queue_limit",  # NOBODY: none
    "drop_newest",
    "arrivals",
    "period_ns",
    "offset_ns",
    "clock_ns",
    "first_time",
    "times",
    "turns",
    "has_vit",
    "has_llm",
    "tokens_per_image",
    "ar",
    "context_tokens",
    "lm_head_split",
    "gap_graph_ns",
    "gap_step_ns",
    "gap_stage_ns",
    "ttft_ns",  # by when it wants its first token; NEVER: it does not say
    "itl_ns",
    "pace_at_ns",
    "pace",
    "pace_limit",
    "vit_on_host",
    "own",  # 1: its ViT has a thread of its own, which is then the first
    "answers",  # the thread of its LLM
    "encoded",  # the request that waits for it; NOBODY
    "taker",  # 1: it waits for one
    "adapter_ns",  # how long it takes to apply an adapter, and to load another set of graphs
    "graphs_ns",
    "turns_waited",  # how often it waited for a turn, and how long in all
    "turns_waited_ns",
    "prefill_tier",  # its context lengths among the values, and how many
    "prefill_tiers",
    "decode_tier",
    "decode_tiers",
    "vit_key",
    "vit_width",
    "prefill_key",
    "prefill_width",
    "decode_key",
    "decode_width",
    *(f"{purpose}_{part}" for purpose in ("think", "between", "images", "text", "output")
      for part in ("key", "first", "count")),
)  # fmt: skip

(CLOSED, PERIODIC, POISSON, REPLAY) = range(4)

REQUEST_FIELDS: Final = (*Request._fields, "next", "kv_tokens")
ROW_FIELDS: Final = (*Execute._fields, "held_before")
SLICE_FIELDS: Final = ("execute", "kind", "start_ns", "end_ns")
SHELL_FIELDS: Final = ("guard", "number", "timer_ns", "grants", "weigh_to")
"""What a guard's shell knows of a lane."""
GUARD_FIELDS: Final = ("process", "lane", "lanes")
LOAD_FIELDS: Final = ("at_ns", "place", "first", "count", "user", "failed")
"""A step of loading: which steps it brings about, and whose loading ends with it."""

TALLY_FIELDS: Final = ("count", "total_ns", "least_ns", "most_ns")
"""One measure of one client, where no rows are kept."""

TABLES: Final[dict[str, tuple[str, ...]]] = {
    "dev": DEVICE_FIELDS,
    "st": STATE_FIELDS,
    "cores": CORE_FIELDS,
    "contexts": CONTEXT_FIELDS,
    "jobs": JOBS,
    "heap": EVENT_FIELDS,
    "shells": SHELL_FIELDS,
    "guards": GUARD_FIELDS,
    "threads": THREAD_FIELDS,
    "users": USER_FIELDS,
    "requests": REQUEST_FIELDS,
    "rows": ROW_FIELDS,
    "slices": SLICE_FIELDS,
    "loads": LOAD_FIELDS,
    "turns": TURNS_FIELDS,
    "tallies": TALLY_FIELDS,
}
"""Tables of records by their names in the world; those of the lanes depend on the policy."""

SINGLE: Final = ("dev", "st")
"""Tables of one record: the world has that record."""

INTEGERS: Final = ("clients", "holders", "evicted", "returns", "children", "values", "bins")
"""Plain lists of integers."""
