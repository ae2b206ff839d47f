"""Genie's own profile in JSON: loading, prompt and generation of dialogs, embeddings, pipelines and their nodes."""

from htpsim.formats.genie_profile.data import Component, Figure, GenieProfile, ProfileEvent
from htpsim.formats.genie_profile.reader import FORMAT, parse, read, samples, service_time, sniff

__all__ = [
    "FORMAT",
    "Component",
    "Figure",
    "GenieProfile",
    "ProfileEvent",
    "parse",
    "read",
    "samples",
    "service_time",
    "sniff",
]
