"""What one reads: tables for the terminal, plots for a slide. Nothing here simulates, and nothing prints."""

from htpsim.report import plot
from htpsim.report.cells import console, to_text
from htpsim.report.decision import capability_matrix, decision_table
from htpsim.report.plots import save_compare_plots, save_run_plots
from htpsim.report.text import assumption_table, inspect_table, load_failures, run_tables

__all__ = [
    "assumption_table",
    "capability_matrix",
    "console",
    "decision_table",
    "inspect_table",
    "load_failures",
    "plot",
    "run_tables",
    "save_compare_plots",
    "save_run_plots",
    "to_text",
]
