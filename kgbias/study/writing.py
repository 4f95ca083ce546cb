"""Profiles that a model writes of people it knows only by name."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from kgbias.crawl.configure import ModelOptions, parted, priced
from kgbias.models.base import Completer
from kgbias.models.budget import Spending, budgeted
from kgbias.parameters import Names
from kgbias.profiles.config import Form
from kgbias.study.context import OfStudy
from kgbias.study.run import Run
from kgbias.study.scorers import opened_completer, spec_of

if TYPE_CHECKING:
    from kgbias.profiles.write import ProfilesPrice


class ProfileOptions(TypedDict, total=False):
    """For whom profiles are written and how a model is asked; `Study.write_profiles` says what each
    one means."""

    names: str | None
    group: Names
    limit: int | None
    attribute: Names
    prompts: str | Path | None
    form: Form | None
    samples: int | None
    temperature: float | None
    min_p: float | None
    max_attempts: int | None
    structured: bool | None
    seed: int | None


class ProfileCall(ProfileOptions, ModelOptions, total=False):
    """All that decides the profiles of the model of a spec."""


class ProfileSpending(ProfileCall, Spending, total=False):
    """That, and what the call may spend."""


class Writing(OfStudy):
    """Profiles that a model writes; a part of `Study`."""

    def write_profiles(
        self,
        model: str | Completer,
        *,
        name: str | None = None,
        **options: Unpack[ProfileSpending],
    ) -> Run:
        """Ask a model for profiles of characters with given names, and put them into the graph.

        The method is that of Siddique et al. 2024, section 6. The same call again continues where
        it was stopped, and asks nothing that was answered before.

        Args:
            model: a spec, or a model that `kgbias.open_model` opened.
            name: a name for the run (None: one that says what it is).
            options: what this call may spend (`max_requests`, `max_tokens`, `max_cost` ...; see
                `Study.crawl`); how a spec is opened (`device`, `dtype` and `batch_size` of a local
                model, `base_url`, `concurrency` and `timeout` of a server); for whom profiles are
                written: `names` ("globalbias", "reference" or a CSV file with the columns name and
                group), of which only those of `group`, and of each group the first `limit`; which
                `attribute` of the `prompts` are asked for; and how: `form` ("json", or "attributes"
                one by one), `samples` of each name (3), `temperature` (1), `min_p`, `max_attempts`
                (5), `structured` (a server keeps to the schema), `seed`.

        Raises:
            UsageError: an unknown name, a number out of range, or parameters that exclude each
                other.
            RunConflict: `name` is taken by a run with other settings.
            ModelError: the model cannot be loaded or reached.
            Interrupted: on Ctrl-C or where a budget is spent; what came is kept.
        """
        from kgbias.profiles.config import configure_profiles
        from kgbias.profiles.write import write_profiles

        opening, rest = parted(options)
        budget, asking = budgeted(rest, spec := spec_of(model, opening))
        config = configure_profiles(spec, **asking)
        with self.working() as progress, opened_completer(model, opening, progress) as asked:
            written = write_profiles(
                config,
                asked,
                self._context.writable(),
                name=name,
                progress=progress,
                budget=budget,
            )
        return Run(self._context, written.run, written=written)

    def price_profiles(self, model: str, **options: Unpack[ProfileSpending]) -> "ProfilesPrice":
        """What `write_profiles` would ask with these parameters. Asks nothing, opens nothing."""
        from kgbias.profiles.config import configure_profiles
        from kgbias.profiles.write import profiles_price

        prices, asking = priced(options, model)
        found = profiles_price(configure_profiles(model, **asking))
        return replace(found, prices=prices)
