"""Whether forced choices recover the probabilities that they are drawn from.

    python benchmarks/choice.py [--statements 60] [--samples 24] [--seed 0] [--model SPEC]

The chooser is a server that speaks OpenAI's protocol. It reads the question, looks up in the
reference world how probable the statement is for the group of each name offered, and draws by
Luce's choice axiom: P(group | options) is its probability over the sum of those of all options. In
further runs it prefers the first place (--preference times as probable as the others), and refuses
or rambles in one answer out of ten. The last run looks up the names themselves, with the
associations that the world plants on one name or root. kgbias asks it like any provider.

Printed for each: how many intervals contain the true share, the rank correlation of shares and true
shares with an interval over statements, how often the group chosen most is truly the most probable,
compared with chance, and the true and found position of the answers; for the run that knows names,
how many of the planted lifts are called chosen more, by their size in bits, and how many if names
are dealt at random. With --model, also how far that model's choices agree with its own
probabilities on the same statements: the rank correlation of lifts, and whether the likeliest group
is the same. Prints JSON.
"""

import argparse
import json
import random
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import kgbias
from kgbias.graph.types import CHOSEN_MORE
from kgbias.methods import choice
from kgbias.methods.choice.result import CategoryChoices
from kgbias.reference.planted_names import load_names
from kgbias.reference.world import Truth, load_truth
from kgbias.stats.estimate import Estimate, nan_to_none
from kgbias.stats.inference import DEFAULT_DRAWS, proportion, rank_correlation

_OPTION = re.compile(r"^([A-Z])\. (.+)$", re.MULTILINE)
_STATEMENT = re.compile(r"____ (.+)")
LIFT_RANGES = ((-99, 0.5), (0.5, 1), (1, 2), (2, 3), (3, 99))  # of planted lifts, in bits


NAMES = load_names()
GROUP_OF = {name.text.casefold(): name.group for name in NAMES.names}
ROW_OF = {name.text.casefold(): row for row, name in enumerate(NAMES.names)}


def option_weights(
    truth: Truth, text: str, options: Sequence[str], by_name: bool = False
) -> list[float]:
    """How probable the statement is of each group, by itself or one of its names, or after the name
    itself (`by_name`); never 0, so any choice can be drawn."""
    predicate, _, object = text.partition(" ")
    place = truth.find_statement(predicate, object)
    assert place is not None, text
    if by_name:
        rows = [ROW_OF.get(option.casefold()) for option in options]
        if None not in rows:
            return [max(NAMES.joint_distribution(row).get(place, 0.0), 1e-6) for row in rows]
    groups = [GROUP_OF.get(option.casefold(), option) for option in options]
    return [max(truth.joint_distribution(group).get(place, 0.0), 1e-6) for group in groups]


@contextmanager
def serve_chooser(
    truth: Truth, *, preference: float = 1.0, silent: float = 0.0, named: bool = False
) -> Iterator[str]:
    """The URL of a chooser, whose answer follows from the question and its seed."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None: ...

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "messages" not in request:  # a trial of the form
                return self.send_error(404)
            text = request["messages"][-1]["content"]
            draw = random.Random(request["seed"])
            options = _OPTION.findall(text)
            answer = "Hello."  # to a trial
            for statement in _STATEMENT.findall(text):
                weights_here = option_weights(
                    truth, statement, [name for _, name in options], named
                )
                weights_here[0] *= preference
                (option,) = draw.choices(options, weights_here)
                answer = f"{option[0]}. {option[1]}"
                if draw.random() < silent:
                    answer = draw.choice(["I'm sorry, but I cannot say that.", "It could be any."])
            message = {"role": "assistant", "content": answer}
            usage = {"prompt_tokens": len(text) // 4, "completion_tokens": 3}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.reply({"choices": [choice], "usage": usage})

        def do_GET(self) -> None:
            self.reply({"object": "list", "data": [{"id": "chooser", "object": "model"}]})

        def reply(self, body: Mapping[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def write_world(path: Path, truth: Truth, statements: int, seed: int) -> None:
    """Write a file with `statements` statements per category, each said about a group that may say
    it."""
    draw = random.Random(seed)
    rows = ["group,predicate,object,category"]
    for category in truth.categories:
        statements_here = sorted(
            {s for group in category.groups for s in truth.joint_distribution(group)}
        )
        for predicate, object in draw.sample(
            statements_here, min(statements, len(statements_here))
        ):
            groups = [g for g in category.groups if truth.is_true_of(g, predicate, object)]
            rows.append(f"{draw.choice(groups)},{predicate},{object},{category.name}")
    path.write_text("\n".join(rows) + "\n", "utf-8")


def true_shares(truth: Truth, part: CategoryChoices) -> np.ndarray:
    """The true shares, [groups, statements]: a group's probability by Luce's axiom, as the mean
    over all sets of options that include it."""
    names = [group.name for group in part.groups]
    shares = np.zeros((len(names), len(part.statements)))
    for s, statement in enumerate(part.statements):
        group_weights = option_weights(truth, statement.text, names)
        for g in range(len(names)):
            others = [n for n in range(len(names)) if n != g]
            sets = list(combinations(others, part.options - 1))
            shares[g, s] = np.mean(
                [
                    group_weights[g] / (group_weights[g] + sum(group_weights[n] for n in s))
                    for s in sets
                ]
            )
    return shares


def compare_shares(
    categories: Sequence[CategoryChoices], truths: Sequence[np.ndarray]
) -> dict[str, Any]:
    """The figures of choices compared with true shares, over all categories."""
    inside = chance = 0.0
    cells, tops = 0, []
    for part, truth in zip(categories, truths, strict=True):
        inside += ((part.shares.low <= truth) & (truth <= part.shares.high)).sum()
        cells += truth.size
        is_best = truth == truth.max(axis=0)
        tops += [is_best[g, s] for s, g in enumerate(part.shares.share.argmax(axis=0))]
        chance += is_best.mean(axis=0).sum()
    return {
        "coverage": proportion(int(inside), cells).as_dict(),
        "rank_correlation": correlate_tables(
            [p.shares.share for p in categories], truths
        ).as_dict(),
        "top_1": proportion(int(sum(tops)), len(tops)).as_dict(),
        "top_1_by_chance": chance / len(tops),
    }


def count_verdicts(categories: Sequence[CategoryChoices]) -> dict[str, Any]:
    """What is called chosen more for the chooser that knows names, by the planted lift in bits."""
    by_lift: dict[str, list[int]] = {}
    dealt_found = dealt_tested = 0.0
    for part in categories:
        rows = [NAMES.groups.index(group.name) for group in part.groups]
        places = {s: n for n, s in enumerate(NAMES.statements)}
        matched = [
            (k, places[s.predicate, s.object])
            for k, s in enumerate(part.statements)
            if (s.predicate, s.object) in places
        ]
        base = NAMES.group_bits[rows]
        base = base - base.mean(axis=1, keepdims=True)
        planted = (base - base.mean(axis=0)) * len(rows) / (len(rows) - 1)
        for (k, n), g in product(matched, range(len(rows))):
            lift, more = planted[g, n], part.shares.verdicts[g, k] == CHOSEN_MORE
            kind = next(f"{low} to {high}" for low, high in LIFT_RANGES if low <= lift < high)
            by_lift.setdefault(kind, []).append(bool(more))
        assert part.shares.floor is not None
        dealt_found, dealt_tested = (
            dealt_found + part.shares.floor.found,
            dealt_tested + part.shares.floor.tested,
        )
    shares = {
        kind: proportion(sum(verdicts), len(verdicts)).as_dict()
        for kind, verdicts in by_lift.items()
    }
    return {"by planted lift": shares, "dealt anew": [dealt_found, dealt_tested]}


def correlate_tables(first: Sequence[np.ndarray], second: Sequence[np.ndarray]) -> Estimate:
    """Spearman's rho between the cells [groups, statements] of several tables, with a percentile
    bootstrap interval over statements."""
    columns = [
        (a[:, s], b[:, s]) for a, b in zip(first, second, strict=True) for s in range(a.shape[1])
    ]

    def rho(chosen: Sequence[int]) -> float:
        return rank_correlation(
            np.concatenate([columns[n][0] for n in chosen]),
            np.concatenate([columns[n][1] for n in chosen]),
        )

    rng = np.random.Generator(np.random.PCG64(0))
    draws = [
        rho(rng.integers(0, len(columns), len(columns)).tolist()) for _ in range(DEFAULT_DRAWS // 4)
    ]
    low, high = np.nanquantile(draws, [0.025, 0.975])
    return Estimate(rho(range(len(columns))), float(low), float(high), len(columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=60, help="of each category")
    parser.add_argument("--samples", type=int, default=24, help="how often a group is offered")
    parser.add_argument("--preference", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="hold the choices of this model against its probabilities")
    arguments = parser.parse_args()
    truth, results = load_truth(), {}
    choosers = {
        "plain": {},
        "prefers the first place": {"preference": arguments.preference},
        "silent in one of ten": {"silent": 0.1},
    }
    with TemporaryDirectory() as folder, kgbias.open(None, progress=False) as study:
        path = Path(folder) / "world.csv"
        write_world(path, truth, arguments.statements, arguments.seed)
        run = study.import_file(path, name="world")
        options: Any = {"samples": arguments.samples, "seed": arguments.seed}
        for name, settings in choosers.items():
            with serve_chooser(truth, **settings) as url:
                choices = choice.choose(run, "openai:chooser", base_url=url, **options)
            truths = [true_shares(truth, part) for part in choices.categories]
            places = [[round(p.value, 3) for p in part.places] for part in choices.categories]
            results[name] = compare_shares(choices.categories, truths) | {
                "answers": dict(choices.outcomes),
                "places": places,
            }
        with serve_chooser(truth, named=True) as url:
            choices = choice.choose(
                run, "openai:chooser", base_url=url, **options | {"seed": arguments.seed + 1}
            )
        results["knows names"] = count_verdicts(choices.categories)
        if arguments.model:
            results[arguments.model] = compare_beliefs(run, arguments.model, options)
    print(json.dumps(nan_to_none(results), indent=2))


def compare_beliefs(run: kgbias.Run, model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The choices of a model compared with its own probabilities."""
    choices = choice.choose(run, model, **options)
    probed = {p.category: p for p in run.probe(model).categories}
    choice_lifts, belief_lifts = [], []
    for part in choices.categories:
        probes = probed[part.category]
        places = [probes.statements.index(s) for s in part.statements]
        choice_lifts.append(part.shares.lift)
        belief_lifts.append(probes.beliefs.lift[:, places])
    same_top = [
        a[:, s].argmax() == b[:, s].argmax()
        for a, b in zip(choice_lifts, belief_lifts, strict=True)
        for s in range(a.shape[1])
        if not np.isnan(a[:, s]).any()  # no answer could be read, or a group is never chosen
    ]
    chance = np.mean([1 / len(a) for a in choice_lifts for _ in range(a.shape[1])])
    return {
        "answers": dict(choices.outcomes),
        "places": [[round(p.value, 3) for p in part.places] for part in choices.categories],
        "rank_correlation_of_lifts": correlate_tables(choice_lifts, belief_lifts).as_dict(),
        "top_1": proportion(int(sum(same_top)), len(same_top)).as_dict(),
        "top_1_by_chance": float(chance),
    }


if __name__ == "__main__":
    main()
