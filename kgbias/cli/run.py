"""`kgbias run`: carry out the study declared in a file, from its crawls to its output files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kgbias
from kgbias.cli import show
from kgbias.cli.command import Command
from kgbias.cli.options import describe_cost, json_option, library_default
from kgbias.cli.show import Output
from kgbias.io.wording import pluralise
from kgbias.models.http import without_password

if TYPE_CHECKING:
    from kgbias.study.plan import StepOutcome


@click.command(
    cls=Command,
    section="Get statements",
    short_help="Carry out a study that a file declares.",
    examples=("kgbias run study.toml --dry-run",),
)
@click.argument(
    "path",
    metavar="[FILE]",
    type=click.Path(path_type=Path),
    default=library_default(kgbias.read_plan, "path"),
)
@click.option(
    "--dry-run", is_flag=True, help="Show the cost of what asks models for runs, and stop."
)
@click.option("--status", is_flag=True, help="Show what is done and what is left, and stop.")
@click.option(
    "--trust",
    is_flag=True,
    help="Let FILE read and write outside its folder, and send the environment's keys and "
    "passwords to addresses in it. --dry-run lists both.",
)
@json_option
def run(path: Path, dry_run: bool, status: bool, trust: bool) -> Output:
    """Carry out the study declared in FILE (default: study.toml): crawl, measure, probe, test,
    compare, and write files. Run the same command again to continue where it stopped."""
    plan = kgbias.read_plan(path)
    if dry_run:
        return _build_prices_output(plan)
    outcomes = plan.state(trust=trust) if status else plan.carry_out(progress=True, trust=trust)
    has_failed = any(outcome.state == "failed" for outcome in outcomes)
    return Output({"steps": outcomes}, lambda: _print_steps(outcomes), lambda: int(has_failed))


def _print_steps(outcomes: "kgbias.Rows[StepOutcome]") -> None:
    for outcome in outcomes:
        output_text = f"  {outcome.step.output}" if outcome.step.output else ""
        error_text = f": {outcome.error}" if outcome.error else ""
        show.say(f"{outcome.state:<7} {outcome.step}{output_text}{error_text}")
    remaining = sum(outcome.state != "done" for outcome in outcomes)
    show.say(f"{len(outcomes) - remaining} of {len(outcomes)} steps are done")


_PRICE_NAMES = ("requests", "requests_at_most", "answer_tokens_at_most", "cost", "cost_at_most")


def _build_prices_output(plan: kgbias.Plan) -> Output:
    prices = plan.prices()
    crawls = []
    for name, price in prices.items():
        crawls.append({"run": name, **{part: getattr(price, part) for part in _PRICE_NAMES}})
    data = {"crawls": crawls, "addresses": plan.addresses, "outside": plan.outside}
    return Output(data, lambda: _print_prices(plan, prices))


def _print_prices(plan: kgbias.Plan, prices: Mapping[str, Any]) -> None:
    for name, price in prices.items():
        until = getattr(price, "until", "")
        bound = f", at most, until {until}" if until else ""
        show.say(
            f"{name}: "
            f"{pluralise(price.requests, 'request')}{bound}, with repeated attempts at most "
            f"{price.requests_at_most} and {price.answer_tokens_at_most} answer tokens"
            f"{'; ' if price.prices else ''}{describe_cost(price)}"
        )
    show.say(f"{pluralise(len(plan.steps) - len(prices), 'more step')}; nothing was asked")
    for address in plan.addresses:
        show.say(
            f"{without_password(address)}: an address in the file; without --trust it "
            "gets no key, unless it is the provider's own or named in the environment"
        )
    for file in plan.outside:
        show.say(f"{file}: outside the study's folder or hidden; needs --trust")
