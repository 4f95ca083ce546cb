"""Where the command begins: Ctrl-C ends it without a traceback, even while modules are imported."""

import os
import sys


def main() -> None:
    """Run the command line."""
    try:
        from kgbias.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("kgbias: stopped\n")
        sys.stderr.flush()
        os._exit(130)
