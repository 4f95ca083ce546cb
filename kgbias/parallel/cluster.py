"""Work on a Ray cluster: Ray Data hands the pieces to actors, of which each holds the model, and
streams back what they made of them.

Ray's own checkpoints are not used (they need files to read from, and hold all ids in memory): a
result is kept by who asked for it as soon as it is there, and the next call asks for what is
missing.
"""

import logging
import os
import pickle
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from kgbias.errors import KgbiasError, MissingExtra, ModelError, UsageError
from kgbias.parallel import P, R, Work
from kgbias.parallel.local import cores
from kgbias.parallel.worker import Failure, Outcome, Worker, packed
from kgbias.progress import Progress

_PASSES = 3  # over what got lost with its workers
_DEATHS = 2  # of workers over one piece, in one pass: what kills each of them must not go on
_OBJECTS = 128 * 2**20  # bytes of pieces and results that a Ray of our own holds; more go to disk
_AHEAD = 2  # pieces that a worker has in hand, so that it does not wait for the next one


class Cluster:
    """A Ray cluster, joined at the first work, or, without an `address`, a Ray of its own on this
    machine. A Ray that the program has joined already is used, and left as it is."""

    def __init__(self, address: str, progress: Progress) -> None:
        self._address, self._told = address, progress
        self._joined = ExitStack()
        self._ray: Any = None

    def close(self) -> None:
        """Leave the cluster; its workers end."""
        self._ray = None
        self._joined.close()

    def each(
        self, work: Work[P, R], pieces: Sequence[P]
    ) -> Generator[tuple[int, R], None, None]:
        """See `kgbias.parallel.Executor`. A piece is tried again where it failed, and where its
        worker ended; the others go on."""
        if work.device not in ("auto", "cpu", "cuda"):
            raise UsageError(
                f"`device` {work.device}: on Ray a worker is given its GPU; name auto, cpu or cuda"
            )
        if self._ray is None:
            self._ray = self._joined.enter_context(_ray(self._address))
        left = dict(enumerate(pieces))
        failed: list[Failure] = []
        for number in range(_PASSES):
            if number:
                self._told.note(f"{len(left)} pieces were lost with their workers: asking again")
            for place, result, failure in self._outcomes(work, left):
                if failure and failure.final:
                    raise failure.error()
                if left.pop(place, None) is None:
                    continue  # which a worker had sent before it ended
                if failure:
                    failed.append(failure)
                else:
                    yield place, result
            if not left:
                break
        if failed:
            kept = f" (and {len(failed) - 1} more pieces)" if len(failed) > 1 else ""
            error = failed[0].error()
            raise type(error)(f"{error}{kept}; what could be done is kept")
        if left:
            raise ModelError(
                f"the workers ended over {len(left)} of {len(pieces)} pieces each time, as they do "
                "when there is not enough memory; what was done is kept"
            )

    def _outcomes(self, work: Work[P, R], pieces: Mapping[int, P]) -> Iterator[Outcome]:
        """One pass over the pieces; those of workers that ended too often do not come."""
        import pyarrow

        data = self._ray.data
        needs = self._needs(work)
        workers = min(len(pieces), self._workers(needs))
        tables = [
            pyarrow.table({"number": [n], "piece": pyarrow.array([pickle.dumps(p)], pyarrow.binary())})
            for n, p in pieces.items()
        ]
        try:
            with _settings(data):
                found = data.from_arrow(tables).map_batches(
                    Worker,
                    fn_constructor_args=(packed(work),),
                    batch_size=None,
                    batch_format="pyarrow",
                    compute=data.ActorPoolStrategy(
                        size=workers, max_tasks_in_flight_per_actor=_AHEAD
                    ),
                    max_restarts=-1,
                    max_task_retries=_DEATHS,
                    **needs,
                )
                for table in found.iter_batches(
                    batch_size=None, batch_format="pyarrow", prefetch_batches=0
                ):
                    yield from map(pickle.loads, table["outcome"].to_pylist())
        except self._ray.exceptions.RayError as error:
            raise _lost(error) from error

    def _needs(self, work: Work[P, R]) -> dict[str, float]:
        """What a worker takes of the cluster: a GPU where there is one, else CPUs."""
        there = self._ray.cluster_resources()
        if work.device == "cuda" and not there.get("GPU"):
            raise UsageError("`device` cuda: the cluster has no GPU")
        if work.device != "cpu" and there.get("GPU"):
            return {"num_gpus": 1, "num_cpus": 1}
        return {"num_cpus": work.threads}

    def _workers(self, needs: Mapping[str, float]) -> int:
        """How many workers the cluster's nodes have room for."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        name = {"num_cpus": "CPU", "num_gpus": "GPU"}
        room = sum(
            min(int(node.get(name[kind], 0) // number) for kind, number in needs.items())
            for node in nodes
        )
        if not room:
            most = max((int(node.get("CPU", 0)) for node in nodes), default=0)
            raise UsageError(
                f"a worker takes {needs['num_cpus']:g} CPUs, as many as this process has threads, "
                f"and the cluster's largest node has {most}: set OMP_NUM_THREADS to fewer"
            )
        return room


@contextmanager
def opened_cluster(address: str, progress: Progress) -> Iterator[Cluster]:
    """A cluster, left at the end."""
    cluster = Cluster(address, progress)
    try:
        yield cluster
    finally:
        cluster.close()
