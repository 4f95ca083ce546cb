"""Where the command begins; `python -m kgbias` is `kgbias`.

Ctrl-C ends it without a traceback and at once, with exit code 130: even while modules are imported,
a name is looked up, a server is silent or a store is locked (tests/integration/test_stopped.py). A
library may hang as it closes down.
"""

import os
import sys

_STOPPED = 130
_FAILED = 70  # an error inside the program (sysexits.h)


def main() -> None:
    """Run the command line."""
    try:
        from kgbias.cli import main as run

        run()
    except SystemExit as ended:
        if ended.code == _STOPPED:  # which has been said
            os._exit(_STOPPED)
        import gc

        # Python would look through all that lives, several times, for what is unused. What torch
        # brings with it says at length of what was not looked through that it is leaked.
        if "torch" not in sys.modules:
            gc.freeze()
        raise
    except KeyboardInterrupt:
        os.write(2, b"kgbias: stopped\n")
        os._exit(_STOPPED)
    except Exception as error:  # a broken installation, or an error on the way to say one
        sys.exit(_report(error))


def _report(error: Exception) -> int:
    """Say in one line what happened, whatever can still be imported; the exit code."""
    line = f"{type(error).__name__}: {error}"
    try:
        from kgbias.cli import crash

        line = crash.save_crash(error)
    except Exception as second:
        line += f"; is kgbias installed in full? ({type(second).__name__}: {second})"
    os.write(2, f"kgbias: {' '.join(line.split())}\n".encode("utf-8", "backslashreplace"))
    return _FAILED


if __name__ == "__main__":
    main()
