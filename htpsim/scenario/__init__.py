"""Scenario files: TOML in, ``htpsim.spec.Scenario`` out, every problem at once."""

from htpsim.scenario.checks import problems, warnings
from htpsim.scenario.document import find, shipped
from htpsim.scenario.file import ResolvedScenario, ScenarioFile, from_tree, load
from htpsim.scenario.outline import Assumption, Variant
from htpsim.scenario.presets import presets
from htpsim.scenario.resolved import resolved_dict
from htpsim.scenario.schema import json_schema
from htpsim.scenario.sourced import SourcedValue

__all__ = [
    "Assumption",
    "ResolvedScenario",
    "ScenarioFile",
    "SourcedValue",
    "Variant",
    "find",
    "from_tree",
    "json_schema",
    "load",
    "presets",
    "problems",
    "resolved_dict",
    "shipped",
    "warnings",
]
