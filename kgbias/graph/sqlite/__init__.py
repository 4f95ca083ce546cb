"""The default store: the whole graph and the answer log in one SQLite file.

Write-ahead logging lets others read while a crawl writes; `synchronous=FULL` makes a committed
answer survive a power cut. One writer at a time: a second one waits. A new kind of node or edge is
a migration in `kgbias.graph.sqlite.schema` and a mixin here.
"""

from kgbias.graph.sqlite.answers import AnswerLog
from kgbias.graph.sqlite.associations import AssociationTables
from kgbias.graph.sqlite.batches import BatchTable
from kgbias.graph.sqlite.beliefs import BeliefTables
from kgbias.graph.sqlite.choices import ChoiceTables
from kgbias.graph.sqlite.flags import FlagTables
from kgbias.graph.sqlite.items import ItemTables
from kgbias.graph.sqlite.keeping import Keeping
from kgbias.graph.sqlite.links import LinkTables
from kgbias.graph.sqlite.passages import PassageTables
from kgbias.graph.sqlite.places import PlaceTables
from kgbias.graph.sqlite.probes import ProbeTables
from kgbias.graph.sqlite.profiles import ProfileTables
from kgbias.graph.sqlite.sofa import SofaTables
from kgbias.graph.sqlite.streams import Streams
from kgbias.graph.sqlite.topics import TopicTables
from kgbias.graph.sqlite.view import CypherView


class SQLiteStore(
    Streams,
    AnswerLog,
    BatchTable,
    AssociationTables,
    ProbeTables,
    ChoiceTables,
    BeliefTables,
    FlagTables,
    SofaTables,
    CypherView,
    LinkTables,
    TopicTables,
    PlaceTables,
    PassageTables,
    ProfileTables,
    Keeping,
    ItemTables,
):
    """See `kgbias.graph.store.Store`."""


__all__ = ["SQLiteStore"]
