"""Which groups a model takes a run's statements to be about, when it has to choose."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from kgbias.crawl.configure import ModelOptions, parted, priced
from kgbias.graph.selection import Selecting, Selection
from kgbias.models.base import Completer, Form
from kgbias.models.budget import Spending, budgeted
from kgbias.parameters import Names, as_names
from kgbias.study.records import statement_of
from kgbias.study.rows import Rows
from kgbias.study.scorers import opened_completer, spec_of
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.probe.choice import ChoiceConfig, ChoicePrice, RunChoices
    from kgbias.probe.choice.ask import Part


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """How often a model took a group for the one that a statement is about (see `ChosenEdge`).
    `said` is how often the run's model said it of this group, in all arms; figures are NaN where
    they are not defined."""

    model: str
    category: str
    group: str
    predicate: str
    object: str
    said: int
    names: int
    answered: int
    chosen: int
    verdict: str
    share: float
    low: float
    high: float
    base: float
    lift: float
    lift_low: float
    lift_high: float
    p_value: float


_FIGURES = ("share", "low", "high", "base", "lift", "lift_low", "lift_high", "p_value")


class ChoiceOptions(Selecting, ModelOptions, total=False):
    """What is asked about, and how; `Run.choose` says what each one means."""

    category: Names
    sample: int | None
    options: int | None
    samples: int | None
    temperature: float | None
    form: Form | None
    prompts: str | Path | None
    indicators: str | Path | None
    seed: int | None


class ChoiceSpending(ChoiceOptions, Spending, total=False):
    """That, and what the call may spend."""


class Choosing(RunView):
    """Which groups a model takes the statements to be about; a part of `Run`."""

    def choose(self, model: str | Completer, **options: Unpack[ChoiceSpending]) -> "RunChoices":
        """Ask a model which group each statement is about: probing by forced choice, for models
        that give no probabilities. Each question offers groups of the category, in balanced orders;
        how often a group is chosen, against its base rate, is written on CHOSEN edges.

        The same call again continues where it was stopped, and asks nothing that was answered
        before.

        Args:
            model: a spec, or a model that `kgbias.open_model` opened.
            options: what this call may spend (`max_requests`, `max_tokens`, `max_cost` ...; see
                `Study.crawl`); how a spec is opened (`device`, `dtype` and `batch_size` of a local
                model, `base_url`, `concurrency` and `timeout` of a server); what is asked about:
                the statements that count (`arm`, `min_acceptability`, `without_echoes`), of one
                `category` or several, of each at most `sample`, drawn at random; and how: at most
                so many `options` in a question (4), each group offered at least `samples` times
                for a statement (24), at a `temperature` (1), in the `form` "chat" (a server's
                default) or "completion" (a local model's), with a question of your own in a folder
                of `prompts`, orders and answers drawn by `seed`. A group of five names or more is
                offered by each in turn and tested over them, one of fewer by its own alone;
                `indicators` is a file of names of groups.

        Raises:
            UsageError: a category that is not there, or a number out of range.
            DataError: the run has no category of two groups with statements.
            ModelError: the model cannot be loaded or reached.
            Interrupted: on Ctrl-C or where a budget is spent; what came is kept.
        """
        from kgbias.probe.choice import choose

        opening, rest = parted(options)
        budget, asking = budgeted(rest, spec := spec_of(model, opening))
        parts, config = self._asked(spec, asking)
        with (
            self._context.working() as progress,
            opened_completer(model, opening, progress) as asked,
        ):
            return choose(self.stored, asked, parts, config, budget=budget, progress=progress)

    def price_choices(self, model: str, **options: Unpack[ChoiceSpending]) -> "ChoicePrice":
        """What `choose` would ask with these parameters. Asks nothing, opens no model."""
        from kgbias.probe.choice import choice_price

        prices, asking = priced(options, model)
        return choice_price(*self._asked(model, asking), prices)

    def choices(self, model: str | None = None) -> Rows[ChoiceRow]:
        """The forced choices that the store holds: a row for each statement and group, under each
        model that `choose` asked, or under one."""
        run = self.stored
        groups = {group.id: group for group in run.groups}
        triples = run.triples()
        said = {(statement_of(t), t.group_id): t.count for t in triples}
        words = {statement_of(t): (t.predicate, t.object) for t in triples}
        rows = []
        for choosing in run.choosings():
            if model is not None and choosing.model.name != model:
                continue
            for e in run.choices(choosing.id):
                if e.group_id not in groups or e.statement_id not in words:
                    continue
                figures = (getattr(e, name) for name in _FIGURES)
                rows.append(
                    ChoiceRow(
                        choosing.model.name,
                        groups[e.group_id].category,
                        groups[e.group_id].name,
                        *words[e.statement_id],
                        said.get((e.statement_id, e.group_id), 0),
                        e.names,
                        e.answered,
                        e.chosen,
                        e.verdict,
                        *(math.nan if value is None else value for value in figures),
                    )
                )
        return Rows(rows, columns=ChoiceRow.__dataclass_fields__)

    def _asked(self, spec: str, options: dict[str, Any]) -> "tuple[list[Part], ChoiceConfig]":
        """The parts and the configuration that options ask for."""
        from kgbias.associate.indicators import read_indicators
        from kgbias.evidence.names import FEWEST, group_names
        from kgbias.models.kinds import form_for
        from kgbias.models.spec import KINDS, on_server
        from kgbias.probe.choice import configure_choice, plan_choices

        which = Selection(
            **{name: options.pop(name) for name in Selecting.__annotations__ if name in options}
        )
        category, sample = as_names(options.pop("category", ())), options.pop("sample", None)
        declared = options.pop("indicators", None)
        indicators = read_indicators(Path(declared) if declared else None)
        every = {g.id: group_names(g, indicators) for g in self.stored.groups}
        names = {id: own for id, own in every.items() if len(own) >= FEWEST}
        served = spec.partition(":")[0] in KINDS and on_server(spec)  # an open model has any name
        usual: Form = "chat" if served else "completion"
        form = form_for(spec, options.pop("form", None))
        config = configure_choice(self.stored, form=form or usual, **options)
        parts = plan_choices(
            self.stored, categories=category, sample=sample, selection=which, names=names,
            seed=config.seed,
        )  # fmt: skip
        return parts, config
