"""The connection to a Neo4j server, with errors as one-line messages."""

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Self
from urllib.parse import urlsplit

from kgbias.errors import MissingExtra, StoreError, UsageError
from kgbias.graph import shape
from kgbias.graph.as_graph import Edges, Nodes
from kgbias.graph.cypher import QueryResult, Value, edge, node, only_the_graph, path
from kgbias.graph.keeping import check_alone
from kgbias.graph.record import Record, record_of
from kgbias.graph.types import NameProbe, StatementEdge
from kgbias.ids import content_id
from kgbias.io.text import storable
from kgbias.io.wording import how
from kgbias.models.base import ModelInfo
from kgbias.models.http import is_key_withheld

Row = Mapping[str, Any]
Statement = tuple[str, Row]  # a query and its parameters

BATCH = 5_000  # rows of one UNWIND
_WAIT_SECONDS = 600.0  # how long a crawl waits for a server that went away
_RETRY_SECONDS = 3.0  # how long the driver retries silently before we say that we are waiting
_ANSWER_SECONDS = 10  # for the first answer of a server
_OLDEST = (5, 23)  # the first with CALL (variable) { ... }
_INDEXES_VECTORS = (5, 18)


_STATEMENTS = """
UNWIND $rows AS row
MERGE (s:Statement {uid: row.uid})
SET s.predicate_uid = row.predicate, s.object_uid = row.object
WITH s, row
MATCH (p:Predicate {uid: row.predicate}), (o:Object {uid: row.object})
SET s.text = p.text + ' ' + o.text, s.name = p.text + ' ' + o.text
WITH s, p, o
MATCH (p)<-[:PREDICATE]-(t:Triple)-[:OBJECT]->(o)
MERGE (t)-[:STATES]->(s)"""
SPEC = "OPTIONAL MATCH (x:Spec {uid: m.uid})"  # no part of the graph: it may be a path
MODEL = (
    "coalesce(x.spec, m.name) AS spec, m.revision AS revision, coalesce(x.own_name, '') AS own_name"
)
_NAME = """
MERGE (m:Model {uid: $uid}) SET m.name = $name, m.revision = $revision
MERGE (x:Spec {uid: $uid}) SET x.spec = $spec, x.own_name = $own_name"""
_RENAME = (
    "MATCH (n)-[:OF]->(:Model {uid: $uid}) WHERE n:AssociationTest OR n:SofaResult "
    "SET n.model = $name",
    "MATCH ()-[e:FLAGGED]->() WHERE e.revision = $revision AND e.model IN $names "
    "SET e.model = $name",
    *(
        f"MATCH (r:Run)-[asked:{by}]->(:Model {{uid: $uid}}) "
        f"MATCH ()-[e:{edge} {{run: r.name}}]->() WHERE e.{uid} = asked.uid SET e.model = $name"
        for edge, (uid, by) in shape.ASKED.items()
    ),
)


def within(seconds: float, work: Callable[[], None]) -> None:
    """Do something in a thread that may be left behind. Raises its error, or TimeoutError."""
    raised: list[BaseException] = []

    def tried() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=tried, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if raised:
        raise raised[0]


class Incomplete(StoreError):
    """A write did not find everything it builds on."""


class Neo4jSession:
    """Reads and writes, in transactions that retry. The user name comes from the URL or
    NEO4J_USERNAME (default neo4j), the password only from NEO4J_PASSWORD, the database from the
    URL's path or NEO4J_DATABASE (default: the server's)."""

    query_timeout: float | None = None

    def __init__(self, url: str, *, notify: Callable[[str], None] | None = None) -> None:
        try:
            import neo4j
        except ModuleNotFoundError as error:
            raise MissingExtra("neo4j", extra="neo4j") from error
        # The driver logs warnings about labels that nothing has yet and about each reconnection,
        # for programs that want them; without a handler Python would print them over the progress.
        logging.getLogger("neo4j").addHandler(logging.NullHandler())
        parts = urlsplit(url)
        if parts.password:
            raise StoreError("leave the password out of the URL: put it in NEO4J_PASSWORD")
        if not parts.hostname:
            raise StoreError(f"{url} names no host: write neo4j://HOST:7687")
        self.url = url
        self._neo4j = neo4j
        self._notify = notify or (lambda _: None)
        self._database = parts.path.strip("/") or os.environ.get("NEO4J_DATABASE") or None
        user = parts.username or os.environ.get("NEO4J_USERNAME", "neo4j")
        self._withheld = is_key_withheld(url)
        password = None if self._withheld else os.environ.get("NEO4J_PASSWORD")
        address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        try:
            self._driver = neo4j.GraphDatabase.driver(
                address,
                auth=(user, password) if password else None,
                connection_timeout=10,
                max_transaction_retry_time=_RETRY_SECONDS,
            )
            within(_ANSWER_SECONDS, self._driver.verify_connectivity)
        except (
            neo4j.exceptions.Neo4jError,
            neo4j.exceptions.DriverError,
            ValueError,
            TimeoutError,
        ) as error:
            raise self._explained(error) from error
        self._refuse_old_server()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._driver.close()

    def state(self) -> None:
        """None: a server has no text that changes with every write."""

    @property
    def driver(self) -> Any:
        """The open driver, for packages that work with it."""
        return self._driver

    @property
    def database(self) -> str | None:
        """The database on the server; None: its default."""
        return self._database

    @property
    def has_vector_index(self) -> bool:
        """Whether the server can index vectors."""
        return not self._version or self._version >= _INDEXES_VECTORS

    def read(self, query: str, **parameters: Any) -> list[Row]:
        """The rows of a read-only query."""
        rows: list[Row] = self._within(
            lambda session: session.execute_read(
                lambda tx: [dict(record) for record in tx.run(query, parameters)]
            )
        )
        return rows

    def stream(self, query: str, **parameters: Any) -> Iterator[Row]:
        """The rows of a long read, as the server sends them. The query must order its rows: if the
        connection is lost, it is run again and the rows already given are skipped."""
        given = 0
        wait = _Wait(self)
        while True:
            try:
                with self._session(read_only=True) as session:
                    for record in islice(session.run(query, parameters), given, None):
                        wait.over()
                        given += 1
                        yield dict(record)
                return
            except Exception as error:
                wait.after(error)

    def write(self, *statements: tuple[str, Mapping[str, Any]], creates: int | None = None) -> None:
        """Run statements in one transaction. They must be safe to repeat: a transaction whose
        commit was not acknowledged is sent again. Raises Incomplete, and changes nothing, if they
        do not create exactly `creates` nodes."""

        def work(tx: Any) -> None:
            created = 0
            for query, parameters in statements:
                created += tx.run(query, parameters).consume().counters.nodes_created
            if creates is not None and created != creates:
                raise Incomplete(f"{self.url} created {created} of {creates} nodes")

        self._within(lambda session: session.execute_write(work))

    def attempt(self, query: str, **parameters: Any) -> list[Row]:
        """The rows of a query that writes. A server that is away is not waited for: StoreError."""
        try:
            with self._session(read_only=False) as session:
                rows: list[Row] = session.execute_write(
                    lambda tx: [dict(record) for record in tx.run(query, parameters)]
                )
        except (self._neo4j.exceptions.Neo4jError, self._neo4j.exceptions.DriverError) as error:
            raise self._explained(error) from error
        return rows

    def records(self, kind: type[Record], query: str, **parameters: Any) -> list[Record]:
        """The rows of a query as records (`spread`)."""
        return [record_of(kind, spread(row)) for row in self.read(query, **parameters)]

    def write_each(self, statements: Iterable[Statement]) -> None:
        """Run statements, each in its own transaction."""
        for statement in statements:
            self.write(statement)

    def write_rows(self, query: str, rows: Sequence[Row | str], **parameters: Any) -> None:
        """Run a query that UNWINDs $rows, a batch of rows per transaction."""
        for start in range(0, len(rows), BATCH):
            self.write((query, {"rows": rows[start : start + BATCH], **parameters}))

    def _add_statements(self, edges: Sequence[StatementEdge] | Sequence[NameProbe]) -> None:
        """Write the statements of edges, whose parts exist, unless they are there."""
        statements = {e.statement_id: (e.predicate_id, e.object_id) for e in edges}
        self.write_rows(
            _STATEMENTS,
            [
                {"uid": uid, "predicate": predicate, "object": object}
                for uid, (predicate, object) in sorted(statements.items())
            ],
        )

    def run_name(self, run_id: str) -> str:
        """The name of a run, as edges hold it; "" if it does not exist."""
        rows = self.read("MATCH (r:Run {uid: $run}) RETURN r.name AS name", run=run_id)
        return next((str(row["name"]) for row in rows), "")

    def models(self) -> list[ModelInfo]:
        rows = self.read(f"MATCH (m:Model) {SPEC} RETURN {MODEL} ORDER BY spec, revision")
        return [model_of(row) for row in rows]

    def keep_models(self, models: Iterable[ModelInfo]) -> None:
        """Write models; one that is known keeps the name that it has."""
        known = self.read("MATCH (x:Spec) RETURN x.uid AS uid")
        there = {row["uid"] for row in known}
        for model in {m.id: m for m in models if m.id not in there}.values():
            self._name(model)

    def call(self, model: ModelInfo) -> None:
        self._name(model)

    def _name(self, model: ModelInfo) -> None:
        """Write a model, and its title wherever it stands."""
        rows = self.read(f"MATCH (m:Model) {SPEC} RETURN {MODEL}, m.uid AS uid, m.name AS title")
        check_alone(model, (model_of(row) for row in rows if row["uid"] != model.id))
        before = [row["title"] for row in rows if row["uid"] == model.id]
        names = [model.name, model.public_name, *before]
        row = {"uid": model.id, "name": model.title, "revision": model.revision, "names": names}
        self.write(
            (_NAME, {**row, "spec": storable(model.name), "own_name": model.called}),
            *((query, row) for query in _RENAME),
        )

    def write_alone(self, query: str, **parameters: Any) -> None:
        """Run one statement that makes its own transactions (CALL ... IN TRANSACTIONS)."""
        self._within(lambda session: session.run(query, parameters).consume())

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> QueryResult:
        """The rows of a read-only Cypher query. Raises UsageError for a query that cannot be run,
        or might do more than read the graph."""
        text, values = only_the_graph(text, parameters)

        @self._neo4j.unit_of_work(timeout=self.query_timeout)
        def work(tx: Any) -> QueryResult:
            result = tx.run(text, values)
            columns = tuple(result.keys())
            return QueryResult(
                columns, [tuple(self._plain(v) for v in record.values()) for record in result]
            )

        try:
            found: QueryResult = self._within(
                lambda session: session.execute_read(work), read_only=True
            )
        except StoreError as error:
            if isinstance(error.__cause__, self._neo4j.exceptions.ClientError):
                raise UsageError(
                    f"the query cannot be run: {_first_line(error.__cause__)}"
                ) from error
            raise
        return found

    def _plain(self, value: Value) -> Value:
        """A value with the driver's nodes, edges and paths in the common form."""
        graph = self._neo4j.graph
        if isinstance(value, graph.Node):
            return node(tuple(value.labels), value)
        if isinstance(value, graph.Relationship):
            return edge(value.type, value)
        if isinstance(value, graph.Path):
            nodes, edges = value.nodes, value.relationships
            return path([self._plain(n) for n in nodes], [self._plain(e) for e in edges])
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if isinstance(value, dict):
            return {key: self._plain(item) for key, item in value.items()}
        return value

    def _within(self, work: Callable[[Any], Any], *, read_only: bool = False) -> Any:
        """Do the work in a session. If the server goes away, say so, wait, and start over."""
        wait = _Wait(self)
        while True:
            try:
                with self._session(read_only) as session:
                    done = work(session)
                wait.over()
                return done
            except Exception as error:
                wait.after(error)

    @contextmanager
    def _session(self, read_only: bool) -> Iterator[Any]:
        mode = self._neo4j.READ_ACCESS if read_only else self._neo4j.WRITE_ACCESS
        with self._driver.session(database=self._database, default_access_mode=mode) as session:
            yield session

    def _refuse_old_server(self) -> None:
        version = self._driver.get_server_info().agent.removeprefix("Neo4j/")
        self._version = tuple(int(n) for n in version.split(".")[:2] if n.isdigit())
        if self._version and self._version < _OLDEST:
            raise StoreError(f"{self.url} runs Neo4j {version}; kgbias needs 5.23 or later")

    def _explained(self, error: Exception) -> StoreError:
        if isinstance(error, TimeoutError):
            return StoreError(
                f"{self.url} does not answer within {_ANSWER_SECONDS} s: is there a Neo4j server "
                "at that port?"
            )
        code = getattr(error, "code", "") or ""
        if "Unauthorized" in code and self._withheld:
            return StoreError(
                f"{self.url} is named only in a file, so NEO4J_PASSWORD is not sent to it: name "
                f"it {how('in `kgbias.open`', 'with --store, or --trust the file')}"
            )
        if "Unauthorized" in code:
            return StoreError(
                f"{self.url} refused the user or password: set NEO4J_PASSWORD (and NEO4J_USERNAME)"
            )
        if "AuthenticationRateLimit" in code:
            return StoreError(f"{self.url} was sent too many wrong passwords: wait, then try again")
        if "CredentialsExpired" in code:
            return StoreError(f"the password of {self.url} has expired: change it in Neo4j Browser")
        if "DatabaseNotFound" in code:
            return StoreError(
                f"{self.url} has no database {self._database!r}: name one in the URL's path or in "
                "NEO4J_DATABASE"
            )
        if "ReadOnly" in code:
            return StoreError(f"the database of {self.url} is read-only")
        if "Forbidden" in code:
            return StoreError(
                f"this user of {self.url} may not write: give it the role editor or publisher, or "
                f"choose another user ({_first_line(error)})"
            )
        if isinstance(error, self._neo4j.exceptions.ServiceUnavailable | ValueError):
            return StoreError(f"cannot reach {self.url}: {_first_line(error)}")
        return StoreError(f"{self.url}: {_first_line(error)}")


class _Wait:
    """The wait of one piece of work for a server that went away."""

    def __init__(self, session: Neo4jSession) -> None:
        self._session = session
        self._deadline: float | None = None

    def after(self, error: Exception) -> None:
        """Wait a second if the connection was lost and time is left; otherwise raise the error, as
        a StoreError if it is the driver's."""
        session, lost = self._session, self._session._neo4j.exceptions
        if not isinstance(error, lost.Neo4jError | lost.DriverError):
            raise error
        if not isinstance(
            error, lost.ServiceUnavailable | lost.SessionExpired | lost.TransientError
        ):
            raise session._explained(error) from error
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + _WAIT_SECONDS
            session._notify(
                f"{session.url} does not answer: waiting up to {_WAIT_SECONDS / 60:.0f} minutes "
                "for it"
            )
        elif now > self._deadline:
            raise session._explained(error) from error
        time.sleep(1)

    def over(self) -> None:
        """Note that the server answered: say so if we were waiting, and reset the limit."""
        if self._deadline is not None:
            self._deadline = None
            self._session._notify(f"{self._session.url} answers again: continuing")


def vector_index(encoder: str) -> tuple[str, str]:
    """The label of statements' vectors by this encoder, and the name of their index."""
    number = content_id("encoder", encoder)[:8]
    return f"StatementVector_{number}", f"kgbias_vectors_{number}"


def model_of(row: Row) -> ModelInfo:
    """The model of a row with `MODEL`."""
    return ModelInfo(row["spec"], row["revision"], row["own_name"])


def spread(row: Row) -> dict[str, Any]:
    """The row with the entries of its maps as columns; its other columns take precedence."""
    found: dict[str, Any] = {}
    for value in row.values():
        if isinstance(value, dict):
            found |= value
    return found | {name: value for name, value in row.items() if not isinstance(value, dict)}


def of_nodes(table: Nodes, *, kept: bool = False) -> Iterator[Statement]:
    """The writes of nodes, a batch each. With `kept`, a node that exists stays as it is."""
    label, rows = table
    key = shape.node(label).key
    put = "ON CREATE SET n = row" if kept else "SET n += row"
    query = f"UNWIND $rows AS row MERGE (n:{label} {{{key}: row.{key}}}) {put}"
    return _batches(query, rows)


def of_edges(table: Edges, *, new: bool = False) -> Iterator[Statement]:
    """The writes of edges between existing nodes, a batch each; `new` edges are not looked for
    first."""
    kind, start, end, rows = table
    a, b = shape.node(start).key, shape.node(end).key
    keys = ", ".join(f"{key}: row[2].{key}" for key in shape.edge(kind).keys)
    edge = f"CREATE (a)-[e:{kind}]->(b)" if new else f"MERGE (a)-[e:{kind} {{{keys}}}]->(b)"
    query = f"""
UNWIND $rows AS row
MATCH (a:{start} {{{a}: row[0]}})
MATCH (b:{end} {{{b}: row[1]}})
{edge}
SET e += row[2]"""
    return _batches(query, (list(row) for row in rows))


def _batches(query: str, rows: Iterable[Any]) -> Iterator[Statement]:
    found = iter(rows)
    while batch := list(islice(found, BATCH)):
        yield query, {"rows": batch}


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "message", None) or error).splitlines() or [type(error).__name__])[0]
