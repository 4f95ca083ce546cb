"""The same crawl several times over, so that one sees how much a figure moves from crawl to crawl.

Each crawl is a run of its own and asks with a random seed of its own, derived from the given one.
The first is the crawl that would be made without repeating, so that any crawl can be repeated later
and is not asked again.
"""

from collections.abc import Iterator
from dataclasses import replace

from kgbias.crawl.config import CrawlConfig, check_repeat
from kgbias.crawl.crawler import CrawlResult, Judge, crawl
from kgbias.crawl.width import Gauge
from kgbias.errors import Interrupted
from kgbias.graph.store import Store
from kgbias.ids import content_id
from kgbias.io.progress import Progress, Silent
from kgbias.models.base import Completer
from kgbias.models.budget import Budget


def crawl_repeatedly(
    config: CrawlConfig,
    model: Completer,
    store: Store,
    *,
    repeat: int = 1,
    judge: Judge | None = None,
    gauge: Gauge | None = None,
    name: str | None = None,
    progress: Progress | None = None,
    budget: Budget | None = None,
) -> Iterator[CrawlResult]:
    """`repeat` independent crawls: the run `name`, then name~2, name~3 ..., whose configurations
    name the first as their series. The budget holds over all of them.

    Raises what `crawl` raises; the same call goes on at the crawl that is not finished.
    """
    progress = progress or Silent()
    check_repeat(repeat)
    budget = budget or Budget()
    for number in range(1, repeat + 1):
        if repeat > 1:
            progress.note(f"crawl {number} of {repeat}")
        try:
            result = crawl(
                _again(config, name or "", number),
                model,
                store,
                judge=judge,
                gauge=gauge,
                name=name if number == 1 else f"{name}~{number}",
                progress=progress,
                budget=budget,
            )
        except Interrupted as stop:
            if repeat == 1:
                raise
            raise Interrupted(f"crawl {number} of {repeat}: {stop}") from None
        name = name or result.run.name
        yield result


def _again(config: CrawlConfig, series: str, number: int) -> CrawlConfig:
    """The configuration of a crawl of a series, counted from 1."""
    if number == 1:
        return config
    seed = int(content_id("crawl", str(config.seed), str(number))[:8], 16)
    return replace(config, seed=seed, series=series)
