"""A system that can do less than this one: see `system.c`."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

from tests.conftest import skip_or_fail

SOURCE = Path(__file__).parent / "system.c"
NO_LOCKS = {"LESS_LOCKS": str(errno.ENOLCK)}
NO_MEMORY = {"LESS_MEMORY": str(errno.ENODEV)}


def limited_environment(folder: Path, **limits: str) -> dict[str, str]:
    """The environment of commands for which files under a folder can do less."""
    library = folder.parent / f"{folder.name}-less.so"
    if not library.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler or os.uname().sysname != "Linux":
            skip_or_fail("no C compiler is installed, or this is not Linux")
        options = ["-shared", "-fPIC", "-w", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run([str(compiler), *options], check=True)
    return {"LD_PRELOAD": str(library), "LESS_UNDER": str(folder.resolve()), **limits}
