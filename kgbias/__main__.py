"""Where the command begins; `python -m kgbias` is `kgbias`.

Ctrl-C ends it without a traceback and at once, with exit code 130: even while modules are imported,
a name is looked up, a server is silent or a store is locked (tests/integration/test_stopped.py). A
library may hang as it closes down.
"""

import os

_STOPPED = 130


def main() -> None:
    """Run the command line."""
    try:
        from kgbias.cli import main as run

        run()
    except SystemExit as ended:
        if ended.code == _STOPPED:  # which has been said
            os._exit(_STOPPED)
        raise
    except KeyboardInterrupt:
        os.write(2, b"kgbias: stopped\n")
        os._exit(_STOPPED)


if __name__ == "__main__":
    main()
