"""Where the command begins; `python -m kgbias` is `kgbias`.

Ctrl-C ends it without a traceback, even while modules are imported."""

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


if __name__ == "__main__":
    main()
