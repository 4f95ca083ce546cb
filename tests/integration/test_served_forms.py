"""In which form models on servers are asked by whatever has them write."""

import json
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.graph.types import ChoiceRun
from kgbias.methods import choice, pairs, stories
from kgbias.methods import profiles as profile_calls
from tests.conftest import require_modules
from tests.fault_server import Fault, FaultServer
from tests.server_kinds import Body, error_body, error_reply, finish_sentence, without_waiting

pytestmark = pytest.mark.integration
require_modules("openai", "spacy")

STORY = "Anna lived in a small village. She was patient and brave, and she worked as a nurse."


def _writes(body: Body, takes: str) -> Fault:
    """A server that takes requests in one form only, and answers what it is asked."""
    if ("messages" in body) != (takes == "chat"):
        return error_reply(400, error_body("that is not taken here"))
    text = json.dumps(body.get("messages") or body["prompt"])
    if "Which group" in text:
        return "B"
    return finish_sentence(body) if text.endswith('..."}]') or "prompt" in body else STORY


@pytest.mark.parametrize("takes", ["chat", "completion"])
def test_the_form_is_found_out_wherever_a_model_writes(takes: str, tmp_path: Path) -> None:
    few: Any = {"base_url": "", "samples": 1}
    with (
        FaultServer(lambda body, _: _writes(body, takes)) as server,
        without_waiting(),
        kgbias.open(tmp_path / "k.db") as study,
    ):
        few["base_url"] = server.url

        def asks() -> list[kgbias.Run]:
            runs = [
                study.crawl("openai:m", group=["Women", "Men"], iterations=0, **few),
                stories.write_stories(study, "openai:m", group=["Women", "Men"], **few),
                pairs.ask_pairs(study, "openai:m", category="gender", request="pay", **few),
                profile_calls.write_profiles(study, "openai:m", group="Arab women", limit=1, **few),
            ]
            choice.choose(runs[0], "openai:m", sample=1, **few)
            return runs

        crawl, *others, profiles = asks()
        assert [run.stored.record.config["form"] for run in (crawl, *others)] == [takes] * 3
        written = "json" if takes == "chat" else "attributes"
        assert profiles.stored.record.config["form"] == written
        (choosing,) = crawl.stored.find_all(ChoiceRun)
        assert dict(choosing.settings)["choice"].endswith(f":{takes}")
        before = len(server.bodies)
        failed = sum(run.generation_summary.failure_share for run in (profiles,))
        asks()
        assert len(server.bodies) - before == failed  # what was found is not found out again
