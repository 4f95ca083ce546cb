"""Where the prompts and the Cypher library lie: in the package of an installed kgbias, at the top
of the repository in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def resource(folder: str, name: str) -> Path:
    """The path of `prompts/NAME` or `cypher/NAME`."""
    installed = _PACKAGE / folder / name
    return installed if installed.exists() else _PACKAGE.parent / folder / name


def names(folder: str, suffix: str) -> list[str]:
    """The names of a folder's files with that suffix, in alphabetical order."""
    installed = _PACKAGE / folder
    found = installed if installed.is_dir() else _PACKAGE.parent / folder
    return sorted(path.name for path in found.glob("*" + suffix))
