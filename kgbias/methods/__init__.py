"""Methods that the core does not know. Each has a folder of its own and adds what it has by entry
points, as another package would (docs/how-to/extend.md): its `entry_points.toml` names its objects,
and its `__init__` has the functions for a person to call.

A method imports the core, and no other method; the core imports none. Without the folder of one,
all else works. tests/unit/test_architecture.py and tests/integration/test_without_methods.py hold
this.

A method's `__init__`, and the module `entries` with its commands, are imported for `kgbias --help`:
what they need is imported in the functions that need it.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import isfunction
from pkgutil import iter_modules
from typing import Any


def list_methods() -> list[str]:
    """The names of the methods that are there."""
    return sorted(module.name for module in iter_modules(__path__) if module.ispkg)


def iter_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The functions for a person to call, of every method that is there, as "NAME.function".
    Imports each method's `__init__`."""
    for name in list_methods():
        method = import_module(f"{__name__}.{name}")
        for function_name, value in vars(method).items():
            is_own = isfunction(value) and value.__module__ == method.__name__
            if is_own and not function_name.startswith("_"):
                yield f"{name}.{function_name}", value
