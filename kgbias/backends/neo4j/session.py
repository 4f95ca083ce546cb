"""The connection to a Neo4j server, with errors as one-line messages.

When the server goes away, the store says so, waits up to ten minutes, and goes on. A silent server
is given up after ten seconds, with a reason. The driver works in a thread that Ctrl-C leaves
behind: before it lets an error through, it rolls back, and waits for the answer to that.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from kgbias.errors import MissingExtra, StoreError, UsageError
from kgbias.graph import shape
from kgbias.graph.cypher import QueryResult, Value, edge_dict, node_dict, path_list, sanitise_query
from kgbias.graph.edge_records import edges_by_asking
from kgbias.graph.graph_tables import EdgeTable, NodeTable
from kgbias.graph.integrity import check_name_unique
from kgbias.graph.record import Record, build_record
from kgbias.graph.types import NameProbe, StatementEdge
from kgbias.ids import content_id
from kgbias.io.stopping import is_stopping
from kgbias.io.text import storable
from kgbias.io.wording import how
from kgbias.models.base import ModelInfo
from kgbias.models.http import is_key_withheld

Row = Mapping[str, Any]
ParametrisedQuery = tuple[str, Row]  # a query and its parameters
_Ending = tuple[Any, BaseException | None]  # the result of some work, or its error

BATCH_ROWS = 5_000  # rows of one UNWIND
_MAX_WAIT_SECONDS = 600.0  # how long a crawl waits for a server that went away
_MAX_RETRY_SECONDS = 3.0  # how long the driver retries silently before we say that we are waiting
_SILENT_WAIT_SECONDS = 10.0  # after which it is said that a server is waited for
_MAX_FIRST_ANSWER_SECONDS = 10  # for the first answer of a server
_MAX_INTERRUPTED_SECONDS = 0.5  # after Ctrl-C, for the server to end what it was asked
_MIN_SERVER_VERSION = (5, 23)  # the first with CALL (variable) { ... }
_MIN_VECTOR_INDEX_VERSION = (5, 18)


_MERGE_STATEMENTS = """
UNWIND $rows AS row
MERGE (s:Statement {uid: row.uid})
SET s.predicate_uid = row.predicate, s.object_uid = row.object
WITH s, row
MATCH (p:Predicate {uid: row.predicate}), (o:Object {uid: row.object})
SET s.text = p.text + ' ' + o.text, s.name = p.text + ' ' + o.text
WITH s, p, o
MATCH (p)<-[:PREDICATE]-(t:Triple)-[:OBJECT]->(o)
MERGE (t)-[:STATES]->(s)"""
MATCH_SPEC = "OPTIONAL MATCH (x:Spec {uid: m.uid})"  # no part of the graph: it may be a path
MODEL_COLUMNS = (
    "coalesce(x.spec, m.name) AS spec, m.revision AS revision, "
    "coalesce(x.display_name, '') AS display_name"
)
_MERGE_MODEL = """
MERGE (m:Model {uid: $uid}) SET m.name = $name, m.revision = $revision
MERGE (x:Spec {uid: $uid}) SET x.spec = $spec, x.display_name = $display_name"""
_RENAME_QUERIES = (
    "MATCH (n)-[:OF]->(:Model {uid: $uid}) WHERE n:AssociationTest OR n:SofaResult "
    "SET n.model = $name",
    "MATCH ()-[e:FLAGGED]->() WHERE e.revision = $revision AND e.model IN $names "
    "SET e.model = $name",
    *(
        f"MATCH (r:Run)-[asked:{asking.type}]->(:Model {{uid: $uid}}) "
        f"MATCH ()-[e:{edge.type} {{run: r.name}}]->() WHERE e.{asking.property} = asked.uid "
        "SET e.model = $name"
        for asking, edges in edges_by_asking().items()
        for edge in edges
    ),
)


def run_within(seconds: float, work: Callable[[], None]) -> None:
    """Do something in a thread that may be left behind. Raises its error, or TimeoutError."""
    errors: list[BaseException] = []

    def run_work() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run_work, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError
    if errors:
        raise errors[0]


class MissingNodes(StoreError):
    """A write did not find all the nodes that it builds on, and so created too few."""


class Neo4jSession:
    """Reads and writes, in transactions that retry. The user name comes from the URL or
    NEO4J_USERNAME (default neo4j), the password only from NEO4J_PASSWORD, the database from the
    URL's path or NEO4J_DATABASE (default: the server's)."""

    query_timeout: float | None = None
    _has_said_slow = False
    _is_left = False  # silent after Ctrl-C: nothing more is asked while the command ends

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
        self._is_password_withheld = is_key_withheld(url)
        password = None if self._is_password_withheld else os.environ.get("NEO4J_PASSWORD")
        address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        try:
            self._driver = neo4j.GraphDatabase.driver(
                address,
                auth=(user, password) if password else None,
                connection_timeout=10,
                max_transaction_retry_time=_MAX_RETRY_SECONDS,
            )
            # `connection_timeout` ends with the connection: a silent server would be waited for.
            run_within(_MAX_FIRST_ANSWER_SECONDS, self._driver.verify_connectivity)
        except (
            neo4j.exceptions.Neo4jError,
            neo4j.exceptions.DriverError,
            ValueError,
            TimeoutError,
        ) as error:
            raise self._explain_error(error) from error
        self._refuse_old_server()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not is_stopping():
            self._driver.close()
        elif not self._is_left:
            with suppress(Exception):
                run_within(_MAX_INTERRUPTED_SECONDS, self._driver.close)

    def content_version(self) -> None:
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
        return not self._version or self._version >= _MIN_VECTOR_INDEX_VERSION

    def read(self, query: str, **parameters: Any) -> list[Row]:
        """The rows of a read-only query."""
        rows: list[Row] = self._run_work(
            lambda session: session.execute_read(
                lambda tx: [dict(record) for record in tx.run(query, parameters)]
            )
        )
        return rows

    def stream(self, query: str, **parameters: Any) -> Iterator[Row]:
        """The rows of a long read, as the server sends them. The query must order its rows: if the
        connection is lost, it is run again and the rows already given are skipped."""
        given_rows = 0
        wait = _ServerWait(self)
        while True:
            try:
                with self._session(read_only=True) as session:
                    for record in islice(session.run(query, parameters), given_rows, None):
                        wait.note_answer()
                        given_rows += 1
                        yield dict(record)
                return
            except Exception as error:
                wait.wait_after(error)

    def write(self, *queries: ParametrisedQuery, creates: int | None = None) -> None:
        """Run queries in one transaction. They must be safe to repeat: a transaction whose commit
        was not acknowledged is sent again. Raises MissingNodes, and changes nothing, if they do not
        create exactly `creates` nodes."""

        def work(tx: Any) -> None:
            created = 0
            for query, parameters in queries:
                created += tx.run(query, parameters).consume().counters.nodes_created
            if creates is not None and created != creates:
                raise MissingNodes(f"{self.url} created {created} of {creates} nodes")

        self._run_work(lambda session: session.execute_write(work))

    def attempt(self, query: str, **parameters: Any) -> list[Row]:
        """The rows of a query that writes. A server that is away is not waited for: StoreError."""
        try:
            rows: list[Row] = self._run_in_thread(
                lambda session: session.execute_write(
                    lambda tx: [dict(record) for record in tx.run(query, parameters)]
                )
            )
        except (self._neo4j.exceptions.Neo4jError, self._neo4j.exceptions.DriverError) as error:
            raise self._explain_error(error) from error
        return rows

    def records(self, kind: type[Record], query: str, **parameters: Any) -> list[Record]:
        """The rows of a query as records (`flatten_row`)."""
        return [build_record(kind, flatten_row(row)) for row in self.read(query, **parameters)]

    def _node_rows(self, label: str, ids: Collection[str] | None = None) -> list[dict[str, Any]]:
        where = "" if ids is None else f" WHERE n.{shape.get_node(label).key} IN $ids"
        rows = self.read(f"MATCH (n:{label}){where} RETURN properties(n) AS n", ids=list(ids or ()))
        return [row["n"] for row in rows]

    def _edge_rows(
        self, type: str, ends: tuple[str, str], wanted: Mapping[str, Collection[str]]
    ) -> list[dict[str, Any]]:
        start, end = ends
        keys = {"a": f"a.{shape.get_node(start).key}", "b": f"b.{shape.get_node(end).key}"}
        conditions = [f"{keys.get(name, f'e.{name}')} IN ${name}" for name in wanted]
        rows = self.read(
            f"MATCH (a:{start})-[e:{type}]->(b:{end}) WHERE {' AND '.join(conditions) or 'true'} "
            f"RETURN {keys['a']} AS a, {keys['b']} AS b, properties(e) AS e",
            **{name: list(values) for name, values in wanted.items()},
        )
        return [flatten_row(row) for row in rows]

    def write_each(self, queries: Iterable[ParametrisedQuery]) -> None:
        """Run queries, each in its own transaction."""
        for query in queries:
            self.write(query)

    def write_rows(self, query: str, rows: Sequence[Row | str], **parameters: Any) -> None:
        """Run a query that UNWINDs $rows, a batch of rows per transaction."""
        for start in range(0, len(rows), BATCH_ROWS):
            self.write((query, {"rows": rows[start : start + BATCH_ROWS], **parameters}))

    def _add_statements(self, edges: Sequence[StatementEdge] | Sequence[NameProbe]) -> None:
        """Write the statements of edges, whose parts exist, unless they are there."""
        statements = {e.statement_id: (e.predicate_id, e.object_id) for e in edges}
        self.write_rows(
            _MERGE_STATEMENTS,
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
        return list(self._models_by_id().values())

    def _models_by_id(self) -> dict[str, ModelInfo]:
        # By their nodes: what was imported does not say the spec that an id is computed from.
        rows = self.read(
            f"MATCH (m:Model) {MATCH_SPEC} RETURN m.uid AS uid, {MODEL_COLUMNS} "
            "ORDER BY spec, revision"
        )
        return {row["uid"]: read_model(row) for row in rows}

    def keep_models(self, models: Iterable[ModelInfo]) -> None:
        """Write models; one that is known keeps the name that it has."""
        spec_rows = self.read("MATCH (x:Spec) RETURN x.uid AS uid")
        known_ids = {row["uid"] for row in spec_rows}
        for model in {m.id: m for m in models if m.id not in known_ids}.values():
            self._write_model(model)

    def set_display_name(self, model: ModelInfo) -> None:
        self._write_model(model)

    def _write_model(self, model: ModelInfo) -> None:
        """Write a model, and its title wherever it stands."""
        rows = self.read(
            f"MATCH (m:Model) {MATCH_SPEC} RETURN {MODEL_COLUMNS}, m.uid AS uid, m.name AS title"
        )
        check_name_unique(model, (read_model(row) for row in rows if row["uid"] != model.id))
        known_titles = [row["title"] for row in rows if row["uid"] == model.id]
        names = [model.name, model.public_name, *known_titles]
        row = {"uid": model.id, "name": model.title, "revision": model.revision, "names": names}
        self.write(
            (
                _MERGE_MODEL,
                {**row, "spec": storable(model.name), "display_name": model.display_name},
            ),
            *((query, row) for query in _RENAME_QUERIES),
        )

    def write_alone(self, query: str, **parameters: Any) -> None:
        """Run one query that makes its own transactions (CALL ... IN TRANSACTIONS)."""
        # The server refuses such a query inside a transaction.
        self._run_work(lambda session: session.run(query, parameters).consume())

    def query(
        self,
        text: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        names: Collection[str] | None = None,
    ) -> QueryResult:
        """The rows of a read-only Cypher query. Raises UsageError for a query that cannot be run,
        or might do more than read the graph."""
        text, values = sanitise_query(text, parameters)

        @self._neo4j.unit_of_work(timeout=self.query_timeout)
        def work(tx: Any) -> QueryResult:
            result = tx.run(text, values)
            columns = tuple(result.keys())
            return QueryResult(
                columns,
                [tuple(self._to_common_form(v) for v in record.values()) for record in result],
            )

        try:
            result_rows: QueryResult = self._run_work(
                lambda session: session.execute_read(work), read_only=True
            )
        except StoreError as error:
            if isinstance(error.__cause__, self._neo4j.exceptions.ClientError):
                raise UsageError(
                    f"the query cannot be run: {_first_line(error.__cause__)}"
                ) from error
            raise
        return result_rows

    def _to_common_form(self, value: Value) -> Value:
        """A value with the driver's nodes, edges and paths in the common form."""
        graph = self._neo4j.graph
        if isinstance(value, graph.Node):
            return node_dict(tuple(value.labels), value)
        if isinstance(value, graph.Relationship):
            return edge_dict(value.type, value)
        if isinstance(value, graph.Path):
            nodes, edges = value.nodes, value.relationships
            return path_list(
                [self._to_common_form(n) for n in nodes], [self._to_common_form(e) for e in edges]
            )
        if isinstance(value, list):
            return [self._to_common_form(item) for item in value]
        if isinstance(value, dict):
            return {key: self._to_common_form(item) for key, item in value.items()}
        return value

    def _run_work(self, work: Callable[[Any], Any], *, read_only: bool = False) -> Any:
        """Do the work in a session. If the server goes away, say so, wait, and start over."""
        wait = _ServerWait(self)
        while True:
            try:
                result = self._run_in_thread(work, read_only=read_only)
                wait.note_answer()
                return result
            except Exception as error:
                wait.wait_after(error)

    def _run_in_thread(self, work: Callable[[Any], Any], *, read_only: bool = False) -> Any:
        """Do the work in a session, in a thread that Ctrl-C leaves behind if the server does not
        end the work soon. That it takes long is said once."""
        # Not queue.Queue: Ctrl-C at the wrong moment leaves its lock broken.
        endings: queue.SimpleQueue[_Ending] = queue.SimpleQueue()

        def run_work() -> None:
            try:
                with self._session(read_only) as session:
                    result = work(session)
                endings.put((result, None))
            except BaseException as error:
                endings.put((None, error))

        if self._is_left:
            raise KeyboardInterrupt
        threading.Thread(target=run_work, daemon=True).start()
        try:
            result, error = self._await_ending(endings)
        except KeyboardInterrupt:
            with suppress(queue.Empty):
                endings.get(timeout=_MAX_INTERRUPTED_SECONDS)
                raise
            if is_stopping():
                self._leave_if_silent()
            raise
        if error is not None:
            raise error
        return result

    def _await_ending(self, endings: "queue.SimpleQueue[_Ending]") -> _Ending:
        """How the work ended."""
        if is_stopping():
            with suppress(queue.Empty):
                return endings.get(timeout=_MAX_INTERRUPTED_SECONDS)
            self._leave_if_silent()
        with suppress(queue.Empty):
            return endings.get(timeout=_SILENT_WAIT_SECONDS)
        if not self._has_said_slow:
            self._has_said_slow = True
            self._notify(
                f"{self.url} is not done after {_SILENT_WAIT_SECONDS:.0f} s: waiting for it"
            )
        return endings.get()

    def _leave_if_silent(self) -> None:
        """Raise KeyboardInterrupt, now and whenever more is asked, unless the server answers."""
        if not self._is_left:
            try:
                run_within(2 * _MAX_INTERRUPTED_SECONDS, self._driver.verify_connectivity)
                return
            except Exception:
                self._is_left = True
        raise KeyboardInterrupt

    @contextmanager
    def _session(self, read_only: bool) -> Iterator[Any]:
        mode = self._neo4j.READ_ACCESS if read_only else self._neo4j.WRITE_ACCESS
        session = self._driver.session(database=self._database, default_access_mode=mode)
        is_interrupted = False
        try:
            yield session
        except KeyboardInterrupt:
            is_interrupted = True
            raise
        finally:
            if is_interrupted or is_stopping():
                # To close it is to wait for the rest of what was asked.
                with suppress(Exception):
                    run_within(_MAX_INTERRUPTED_SECONDS, session.close)
            else:
                session.close()

    def _refuse_old_server(self) -> None:
        version = self._driver.get_server_info().agent.removeprefix("Neo4j/")
        self._version = tuple(int(n) for n in version.split(".")[:2] if n.isdigit())
        if self._version and self._version < _MIN_SERVER_VERSION:
            raise StoreError(f"{self.url} runs Neo4j {version}; kgbias needs 5.23 or later")

    def _explain_error(self, error: Exception) -> StoreError:
        if isinstance(error, TimeoutError):
            return StoreError(
                f"{self.url} does not answer within {_MAX_FIRST_ANSWER_SECONDS} s: is there a "
                "Neo4j server at that port?"
            )
        code = getattr(error, "code", "") or ""
        if "Unauthorized" in code and self._is_password_withheld:
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


class _ServerWait:
    """The wait of one piece of work for a server that went away."""

    def __init__(self, session: Neo4jSession) -> None:
        self._session = session
        self._deadline: float | None = None

    def wait_after(self, error: Exception) -> None:
        """Wait a second if the connection was lost and time is left; otherwise raise the error, as
        a StoreError if it is the driver's."""
        session, driver_errors = self._session, self._session._neo4j.exceptions
        if not isinstance(error, driver_errors.Neo4jError | driver_errors.DriverError):
            raise error
        if not isinstance(
            error,
            driver_errors.ServiceUnavailable
            | driver_errors.SessionExpired
            | driver_errors.TransientError,
        ):
            raise session._explain_error(error) from error
        if is_stopping():
            session._is_left = True
            raise KeyboardInterrupt from error
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + _MAX_WAIT_SECONDS
            session._notify(
                f"{session.url} does not answer: waiting up to {_MAX_WAIT_SECONDS / 60:.0f} "
                "minutes for it"
            )
        elif now > self._deadline:
            raise session._explain_error(error) from error
        time.sleep(1)

    def note_answer(self) -> None:
        """Note that the server answered: say so if we were waiting, and reset the limit."""
        if self._deadline is not None:
            self._deadline = None
            self._session._notify(f"{self._session.url} answers again: continuing")


class VectorIndex(NamedTuple):
    """The label of statements' vectors by an encoder, and the name of their index."""

    label: str
    name: str


def name_vector_index(encoder: str) -> VectorIndex:
    """The label of statements' vectors by this encoder, and the name of their index."""
    number = content_id("encoder", encoder)[:8]
    return VectorIndex(f"StatementVector_{number}", f"kgbias_vectors_{number}")


def read_model(row: Row) -> ModelInfo:
    """The model of a row with `MODEL_COLUMNS`."""
    return ModelInfo(row["spec"], row["revision"], row["display_name"])


def flatten_row(row: Row) -> dict[str, Any]:
    """The row with the entries of its maps as columns; its other columns take precedence."""
    flat_row: dict[str, Any] = {}
    for value in row.values():
        if isinstance(value, dict):
            flat_row |= value
    return flat_row | {name: value for name, value in row.items() if not isinstance(value, dict)}


def build_node_queries(
    table: NodeTable, *, keep_existing: bool = False
) -> Iterator[ParametrisedQuery]:
    """The writes of nodes, a batch each. With `keep_existing`, a node that exists stays as it
    is."""
    label, rows = table
    key = shape.get_node(label).key
    set_clause = "ON CREATE SET n = row" if keep_existing else "SET n += row"
    query = f"UNWIND $rows AS row MERGE (n:{label} {{{key}: row.{key}}}) {set_clause}"
    return _iter_batches(query, rows)


def build_edge_queries(table: EdgeTable, *, create: bool = False) -> Iterator[ParametrisedQuery]:
    """The writes of edges between existing nodes, a batch each; `create` edges are not looked for
    first."""
    kind, start, end, rows = table
    start_key, end_key = shape.get_node(start).key, shape.get_node(end).key
    keys = ", ".join(f"{key}: row[2].{key}" for key in shape.get_edge(kind).keys)
    edge = f"CREATE (a)-[e:{kind}]->(b)" if create else f"MERGE (a)-[e:{kind} {{{keys}}}]->(b)"
    query = f"""
UNWIND $rows AS row
MATCH (a:{start} {{{start_key}: row[0]}})
MATCH (b:{end} {{{end_key}: row[1]}})
{edge}
SET e += row[2]"""
    return _iter_batches(query, (list(row) for row in rows))


def _iter_batches(query: str, rows: Iterable[Any]) -> Iterator[ParametrisedQuery]:
    """The query for each batch of rows."""
    stream = iter(rows)
    while batch := list(islice(stream, BATCH_ROWS)):
        yield query, {"rows": batch}


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "message", None) or error).splitlines() or [type(error).__name__])[0]
