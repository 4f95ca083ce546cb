"""The errors a user can meet. Each is one clear line that says what to do; the command line prints
it without a traceback and exits with 2.

    KgbiasError
      UsageError        a bad name, option or combination
      DataError         a file or an answer that cannot be read
      MissingExtra      a package that an extra brings is not installed
      StoreError        the graph store cannot be opened, read or written
        RunNotFound     no run of that name
        RunConflict     a run of that name exists with other settings
      ModelError        a language model cannot be loaded or reached
      Interrupted       stopped by Ctrl-C or a budget; the same command goes on (exit code 130)
"""


class KgbiasError(Exception):
    """Base of all errors that are the user's to mend. The message is one line."""

    exit_code = 2


class UsageError(KgbiasError):
    """A bad name, option or combination of options."""


class DataError(KgbiasError):
    """A file that cannot be read as what it should be."""


class MissingExtra(KgbiasError):
    """A package of an optional extra is missing."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'kgbias[{extra}]'")
        self.package = package
        self.extra = extra


class StoreError(KgbiasError):
    """The graph store cannot be opened, read or written."""


class RunNotFound(StoreError):
    """No run of that name is in the store."""


class RunConflict(StoreError):
    """A run of that name exists with other settings."""


class ModelError(KgbiasError):
    """A language model cannot be found, loaded or reached."""


class Interrupted(KgbiasError):
    """Stopped before the end, with nothing lost; the same command goes on."""

    exit_code = 130
