"""What leaving requests with a provider costs, who can, and what becomes of its results."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kgbias
from kgbias.cli import cli
from kgbias.errors import DataError, UsageError
from kgbias.methods import profiles
from kgbias.models.budget import Budget, Prices, Usage, read_prices
from tests.conftest import require_modules
from tests.texts import Texts

require_modules("openai", "anthropic")

both = pytest.mark.parametrize("kind", ["openai", "anthropic"])


def test_afforded() -> None:
    sizes = [(100, 20)] * 5
    assert Budget().count_affordable(sizes) == 5
    assert Budget(max_tokens=360).count_affordable(sizes) == 3
    priced = Usage(100, 0, Prices(1e6, 2e6))  # 1 and 2 for a token
    assert Budget(max_cost=380, usage=priced).count_affordable(sizes) == 2


def test_the_price_of_a_batch_is_the_user_s(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_text(
        'currency = "USD"\n[models."openai:m"]\nin = 2.0\nout = 8.0\nbatch_in = 1.0\n'
        'batch_out = 4.0\n[models."openai:n"]\nin = 2.0\nout = 8.0\n'
        '[models."openai:o"]\nin = 2.0\nout = 8.0\nbatch_in = 1.0\n'
    )
    full = Prices(2, 8, "USD")
    assert read_prices(path, "openai:m", batch=True) == Prices(1, 4, "USD", full)
    assert read_prices(path, "openai:m") == read_prices(path, "openai:n", batch=True) == full
    with pytest.raises(DataError, match="`batch_in` and `batch_out`"):
        read_prices(path, "openai:o", batch=True)
    arguments = [
        "crawl",
        "--model",
        "openai:m",
        "--category",
        "gender",
        "--dry-run",
        "--set",
        f"prices={path}",
    ]
    half = CliRunner().invoke(cli, [*arguments, "--batch"]).stdout.splitlines()[-1]
    whole = CliRunner().invoke(cli, arguments).stdout.splitlines()[-1]
    cost = whole.split(",")[0].removeprefix("about ")
    assert f"instead of {cost} without a batch" in half and "instead" not in whole


def test_who_takes_batches(texts: Texts) -> None:
    for model in ("reference", "google:m"):
        with texts.raises(UsageError):
            kgbias.price(model, category="gender", batch=True)
    with kgbias.open(None, progress=False) as study:
        with texts.raises(UsageError):
            study.crawl("reference", group=["Tealanders"], samples=1, iterations=0, batch=True)
        with pytest.raises(UsageError, match="`batch` is for"):
            profiles.write_profiles(study, "google:m", limit=1, batch=True, dry_run=True)


HOSTILE = [
    b"",
    b"null\n[]\n5\n",
    b'{"custom_id": 5}\n',
    b'{"custom_id": "KEY"}\n{"custom_id":',
    b'{"custom_id": "KEY", "response": {"status_code": 200, "body": 5}}',
    b'{"custom_id": "KEY", "response": 7, "error": 5}',
    b'{"custom_id": "KEY", "result": []}',
    b'{"custom_id": "KEY", "result": {"type": "succeeded", "message": {"content": 5}}}',
    b'{"custom_id": "KEY", "result": {"type": "errored", "error": {}}}',
    b"\xff" * 100,
]


@both
@pytest.mark.parametrize("body", HOSTILE, ids=repr)
def test_any_results_end_as_failures(
    kind: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kgbias.models import open_model
    from kgbias.models.base import Request

    monkeypatch.setattr("kgbias.backends.batches.base._POLL_SECONDS", (0.0, 0.0))
    model: Any = open_model(f"{kind}:m", base_url="http://127.0.0.1:1")
    batches, request = model.batches(), Request((("user", "x"),), 0)

    async def lines(*_: Any) -> bytes:
        return body.replace(b"KEY", b"k1")

    batches._results = lines
    found = batches.results("b", {"k1": request})
    model.close()
    assert all(c.finish == "error" and c.error for c in found.values())
