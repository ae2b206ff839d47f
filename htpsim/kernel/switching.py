"""Turns at a copy, and its switches of graphs and adapter, around the rules of ``memory.turns``.

A switch takes its time in the thread, or, where the guard covers it, in the next call, once that is granted; the copy
then counts as ready for others when the call has returned.
"""

from __future__ import annotations

from typing import Any

from htpsim.device.records import NOBODY
from htpsim.kernel.events import GAP, host_place, push
from htpsim.kernel.fields import LINED_UP, RESUMES, SWITCHING
from htpsim.memory.turns import leave, line_up, needs_adapter, needs_graphs, serve, settle


def ask_turn(w: Any, thread: Any) -> bool:
    """Ask for a turn at the copy; tell whether it is the thread's at once, else it goes on when it is."""
    turns = w.turns[thread.copy]
    line_up(turns, w.threads, thread.number)
    if serve(turns, w.threads) == thread.number:
        return True
    thread.asked_ns = w.st.now_ns
    thread.phase = LINED_UP
    return False


def note_wait(w: Any, thread: Any) -> None:
    """Note how long a thread has waited for its turn."""
    user = w.users[thread.user]
    user.turns_waited += 1
    user.turns_waited_ns += w.st.now_ns - thread.asked_ns


def make_ready(w: Any, thread: Any, graphs: int) -> bool:
    """Switch the copy to the thread's adapter and a set of graphs; tell whether the thread may call at once."""
    user, turns = w.users[thread.user], w.turns[thread.copy]
    thread.graphs = graphs
    switch_ns = needs_adapter(turns, thread.adapter) * user.adapter_ns + needs_graphs(turns, graphs) * user.graphs_ns
    if switch_ns and w.st.covers_switches:
        thread.switch_ns = switch_ns
    elif switch_ns:
        thread.phase = SWITCHING
        push(w, w.st.now_ns + switch_ns, host_place(thread.user, GAP, thread.second), RESUMES, thread.number)
        return False
    else:
        settle_copy(w, thread)
    return True


def settle_copy(w: Any, thread: Any) -> None:
    """Let others know that the copy is as this thread needs it."""
    thread.switch_ns = 0
    turns = w.turns[thread.copy]
    settle(turns)
    call_in(w, turns)


def leave_copy(w: Any, thread: Any) -> None:
    """Give the turn to those whose it is now."""
    turns = w.turns[thread.copy]
    leave(turns, w.threads, thread.number)
    call_in(w, turns)


def call_in(w: Any, turns: Any) -> None:
    """Let those go on whose turn it is now."""
    t = serve(turns, w.threads)
    while t != NOBODY:
        thread = w.threads[t]
        push(w, w.st.now_ns, host_place(thread.user, GAP, thread.second), RESUMES, t)
        t = serve(turns, w.threads)
