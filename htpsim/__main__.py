"""``python -m htpsim``: the command line."""

from htpsim.cli import main

if __name__ == "__main__":
    main()
