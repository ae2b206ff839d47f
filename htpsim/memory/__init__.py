"""What a device holds: placement, the registry, three memory ledgers, loads in flight. No clock, no I/O."""

from htpsim.memory.loading import Loading
from htpsim.memory.memory import Memory
from htpsim.memory.placement import Key, copy_name, copy_name_of_own, gang_cores, place, registry_key
from htpsim.memory.plan import LoadedContext, kv_shares
from htpsim.memory.registry import Outcome, Registry, Role
from htpsim.memory.turns import Turns

__all__ = [
    "Key",
    "LoadedContext",
    "Loading",
    "Memory",
    "Outcome",
    "Registry",
    "Role",
    "Turns",
    "copy_name",
    "copy_name_of_own",
    "gang_cores",
    "kv_shares",
    "place",
    "registry_key",
]
