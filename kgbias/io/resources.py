"""What ships with kgbias: the version, and where the prompts and the Cypher library are: in the
package if kgbias is installed, at the top of the repository in a checkout."""

from pathlib import Path

__version__ = "0.1.0"
_PACKAGE_FOLDER = Path(__file__).parent.parent


def resource_path(folder: str, name: str) -> Path:
    """The path of `prompts/NAME` or `cypher/NAME`."""
    installed = _PACKAGE_FOLDER / folder / name
    return installed if installed.exists() else _PACKAGE_FOLDER.parent / folder / name


def file_names(folder: str, suffix: str) -> list[str]:
    """The names of a folder's files with this suffix, in alphabetical order."""
    return sorted(path.name for path in _folder_path(folder).glob("*" + suffix))


def folder_names(folder: str) -> list[str]:
    """The names of a folder's subfolders, in alphabetical order."""
    return sorted(path.name for path in _folder_path(folder).iterdir() if path.is_dir())


def _folder_path(name: str) -> Path:
    installed = _PACKAGE_FOLDER / name
    return installed if installed.is_dir() else _PACKAGE_FOLDER.parent / name
