"""The command line: a thin shell that reads options, calls the library and prints what it returns.

Exit codes: 0 all well; 1 a check failed; 2 bad input or usage; 3 an invariant broke; 130 interrupted; 141 the reader of
the output went away. Results go to standard output, everything else to standard error.
"""

from htpsim.cli.app import cli, main

__all__ = ["cli", "main"]
