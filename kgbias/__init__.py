"""kgbias: a map of what a language model believes about groups of people.

    import kgbias

    with kgbias.open("kgbias.db") as study:
        run = study.crawl("smollm2", category="gender")
        run.measure()
        run.figure("Women", "overall_regard")

`kgbias.open` is the front door: it opens a `Study`, a store of runs, and all else is a method of
the study or of one of its `Run`s. The command line calls the same methods. Importing kgbias
imports no other module; each name below is loaded when it is first used. So Ctrl-C finds a command
in the hands of `__main__`, which ends it without a traceback, as early as Python allows.

Public names are those below; a test holds them to a list. To add one, add it here and to
docs/api/index.md.
"""

from importlib import import_module

TYPE_CHECKING = False  # checkers of types take it for true
if TYPE_CHECKING:
    from typing import Any

    from kgbias import errors as errors
    from kgbias.crawl.config import CrawlConfig as CrawlConfig
    from kgbias.crawl.plans import Price as Price
    from kgbias.crawl.seeds import SeedCategory as SeedCategory
    from kgbias.crawl.seeds import known_seeds as known_seeds
    from kgbias.errors import DataError as DataError
    from kgbias.errors import Interrupted as Interrupted
    from kgbias.errors import KgbiasError as KgbiasError
    from kgbias.errors import MissingExtra as MissingExtra
    from kgbias.errors import ModelError as ModelError
    from kgbias.errors import RunConflict as RunConflict
    from kgbias.errors import RunNotFound as RunNotFound
    from kgbias.errors import StoreError as StoreError
    from kgbias.errors import UsageError as UsageError
    from kgbias.io.resources import __version__ as __version__
    from kgbias.io.rows import Rows as Rows
    from kgbias.measure.scorers import Judgement as Judgement
    from kgbias.measure.scorers import Scorer as Scorer
    from kgbias.measure.scorers import load_scorer as load_scorer
    from kgbias.measures import MEASURES as MEASURES
    from kgbias.models import open_model as open_model
    from kgbias.models.in_memory import in_memory as in_memory
    from kgbias.models.score.load import open_scorer as open_scorer
    from kgbias.probe import gather_sets as gather_sets
    from kgbias.probe import probe_sets as probe_sets
    from kgbias.probe import surprisals as surprisals
    from kgbias.stats.estimate import Estimate as Estimate
    from kgbias.study.plan import Plan as Plan
    from kgbias.study.plan import read_plan as read_plan
    from kgbias.study.records import Figure as Figure
    from kgbias.study.reproduction import Reproduction as Reproduction
    from kgbias.study.reproduction import reproduce as reproduce
    from kgbias.study.run import Run as Run
    from kgbias.study.study import Study as Study
    from kgbias.study.study import model_kinds as model_kinds
    from kgbias.study.study import open as open
    from kgbias.study.study import plugins as plugins
    from kgbias.study.study import price as price
    from kgbias.study.study import queries as queries

# module -> the public names that it defines
_PUBLIC = {
    "kgbias.crawl.config": ("CrawlConfig",),
    "kgbias.crawl.plans": ("Price",),
    "kgbias.crawl.seeds": ("SeedCategory", "known_seeds"),
    "kgbias.errors": (
        "DataError",
        "Interrupted",
        "KgbiasError",
        "MissingExtra",
        "ModelError",
        "RunConflict",
        "RunNotFound",
        "StoreError",
        "UsageError",
    ),
    "kgbias.stats.estimate": ("Estimate",),
    "kgbias.measure.scorers": ("Judgement", "Scorer", "load_scorer"),
    "kgbias.measures": ("MEASURES",),
    "kgbias.models": ("open_model",),
    "kgbias.models.in_memory": ("in_memory",),
    "kgbias.models.score.load": ("open_scorer",),
    "kgbias.probe": ("gather_sets", "probe_sets", "surprisals"),
    "kgbias.study.plan": ("Plan", "read_plan"),
    "kgbias.study.records": ("Figure",),
    "kgbias.study.reproduction": ("Reproduction", "reproduce"),
    "kgbias.io.resources": ("__version__",),
    "kgbias.io.rows": ("Rows",),
    "kgbias.study.run": ("Run",),
    "kgbias.study.study": ("Study", "model_kinds", "open", "plugins", "price", "queries"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

_FunctionType = type(import_module)  # `types`, which has it, would be another module

__all__ = ["errors", *sorted(_HOME)]


def __getattr__(name: str) -> "Any":
    if name == "errors":
        return import_module("kgbias.errors")
    if name not in _HOME:
        raise AttributeError(f"module 'kgbias' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    # `open` has words of its own for what is no store.
    if isinstance(value, _FunctionType) and name != "open":
        value = import_module("kgbias.study.calls").public_call(value)
        value.__module__ = "kgbias"  # where a pickle finds it
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
