"""The report: one HTML file that holds everything and asks nothing of the network."""

from htpsim.report.html.material import Material, from_comparison, from_directory, from_single
from htpsim.report.html.page import html_report, write_report
from htpsim.report.html.wording import LANGUAGES

__all__ = ["LANGUAGES", "Material", "from_comparison", "from_directory", "from_single", "html_report", "write_report"]
