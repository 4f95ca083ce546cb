"""What a crawl asks, and what is known of it beforehand."""

from typing import Any

import pytest

from kgbias.crawl import plans
from kgbias.crawl.config import CrawlConfig
from kgbias.crawl.seeds import SeedCategory
from kgbias.graph.types import Category


def test_a_price_renders_no_more_prompts_for_more_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[int] = []
    count = plans.render_prompt

    def counted(*given: Any) -> Any:
        rendered[-1] += 1
        return count(*given)

    monkeypatch.setattr(plans, "render_prompt", counted)
    prices = []
    for many in (50, 500):
        rendered.append(0)
        category = SeedCategory(
            Category("people"), "", tuple(f"People {number}" for number in range(many))
        )
        prices.append(plans.price_crawl(CrawlConfig(seeds=(category,))))
    assert rendered[0] == rendered[1] > 0
    few, more = ([stage.requests for stage in price.stages] for price in prices)
    assert more == [10 * number for number in few]
