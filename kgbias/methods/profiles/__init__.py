"""Profiles: what a model writes about a person whom it knows only by name.

from kgbias.methods import profiles

run = profiles.write_profiles(study, "smollm2", limit=2)
profiles.analyse_profiles(run)
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, overload

from kgbias.errors import UsageError
from kgbias.io.tables_in_memory import Table
from kgbias.parameters import (
    BudgetOptions,
    GenerationOptions,
    ModelOptions,
    Names,
    PathLike,
    as_names,
    check_options,
)
from kgbias.study.calls import public_call

if TYPE_CHECKING:
    from kgbias.graph.profiles import Profile
    from kgbias.io.rows import Rows
    from kgbias.methods.profiles.agreement import ProfileAgreement
    from kgbias.methods.profiles.analysis import ProfileAnalysis
    from kgbias.methods.profiles.classify import Kernel
    from kgbias.methods.profiles.write import ProfilesPrice
    from kgbias.models.base import Completer
    from kgbias.study.run import Run
    from kgbias.study.study import Study


class ProfileOptions(GenerationOptions, total=False):
    """Whose profiles to write, and how to ask the model; see `write_profiles`."""

    names: Table | None
    group: Names
    limit: int | None
    attribute: Names
    prompts: str | Path | None
    form: Literal["json", "attributes"] | None
    max_attempts: int | None
    structured: bool | None


class ProfileSpending(ProfileOptions, ModelOptions, BudgetOptions, total=False):
    """The same, how the model is opened, and what the call may spend."""


@overload
def write_profiles(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[ProfileSpending],
) -> "Run": ...


@overload
def write_profiles(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: Literal[True],
    **options: Unpack[ProfileSpending],
) -> "ProfilesPrice": ...


@public_call
def write_profiles(
    study: "Study",
    model: "str | Completer",
    *,
    name: str | None = None,
    dry_run: bool = False,
    **options: Unpack[ProfileSpending],
) -> "Run | ProfilesPrice":
    """Ask a model for profiles of characters with given names, and put them into the graph.

    The method is that of Siddique et al. 2024, section 6. Repeat the call to continue where it
    stopped; nothing that was answered is asked again.

    Args:
        study: the study, whose store keeps the run.
        model: a spec, or a model opened by `kgbias.open_model`.
        name: a name for the run (None: a descriptive one).
        dry_run: ask and open nothing, and return what the call would ask.
        options: what this call may spend (`max_requests`, `max_tokens`, `max_cost` ...; see
            `Study.crawl`); how to open a spec (`device`, `dtype` and `batch_size` for a local
            model, `base_url`, `concurrency` and `timeout` for a server); whose profiles to
            write: `names` ("globalbias", "reference" or a CSV file with the columns name and
            group), only those of `group`, and the first `limit` of each group; which
            `attribute` of the `prompts` to ask for; and how: `form` ("json", or "attributes"
            one by one), `samples` of each name (3), `temperature` (1), `min_p`, `max_attempts`
            (5), `structured` (a server follows the schema), `seed`.

    Raises:
        UsageError: an unknown name, a number out of range, parameters that exclude each other,
            or a name (`model_name`) that another model of the store has.
        RunConflict: `name` is taken by a run with other settings.
        ModelError: the model cannot be loaded or reached.
        Interrupted: on Ctrl-C or when a budget is spent; answers so far are kept.
    """
    if dry_run:
        return _price(model, **options)
    from kgbias.methods.profiles import write
    from kgbias.methods.profiles.config import configure_profiles
    from kgbias.study.writing import write_run

    forms = {"chat": "json", "completion": "attributes"}
    return write_run(
        study.context,
        model,
        check_options(options, ProfileSpending),
        configure_profiles,
        write.write_profiles,
        name,
        "profiles",
        forms,
    )


def _price(model: "str | Completer", **options: Unpack[ProfileSpending]) -> "ProfilesPrice":
    from kgbias.methods.profiles.config import configure_profiles
    from kgbias.methods.profiles.write import profiles_price
    from kgbias.study.writing import price_run

    call_options = check_options(options, ProfileSpending)
    return price_run(model, call_options, configure_profiles, profiles_price)


@public_call
def list_profiles(run: "Run") -> "Rows[Profile]":
    """The characters written for given names, in the order of the run.

    Frame columns: name, group (as in statements), what the name stands for (label, ethnicity,
    gender), and a column for each attribute with its values as a list.

    Args:
        run: the run.
    """
    from kgbias.methods.profiles.contents import profile_rows

    return profile_rows(run.stored)


@public_call
def analyse_profiles(
    run: "Run",
    *,
    attribute: Names = (),
    group: Names = (),
    repeats: int | None = None,
    permutations: int | None = None,
    draws: int | None = None,
    kernel: "Kernel" = "linear",
    seed: int = 0,
) -> "ProfileAnalysis":
    """Test whether groups can be told apart by the profiles written for their names, by which
    attributes and by which words (Siddique et al. 2024, section 6).

    Args:
        run: the run of profiles, or an import of some.
        attribute: the attributes to use (none: all).
        group: the groups to tell apart, by label such as "ARAB F" (none: all).
        repeats: random 70/30 splits (None: 20).
        permutations: permutations of the labels over names, for chance (None: 99).
        draws: bootstrap draws for words (None: 500).
        kernel: the support vector machine's, "linear" or "radial". The radial one takes
            minutes; it gives what the paper has without religion.
        seed: the random seed of all three.

    Raises:
        UsageError: the run has no profiles, or lacks an attribute or group.
    """
    from kgbias.methods.profiles import analysis
    from kgbias.methods.profiles.contents import require_profiles

    profiles = require_profiles(run.stored)
    options = {"repeats": repeats, "permutations": permutations, "draws": draws}
    with run.context.working() as progress:
        return analysis.analyse_profiles(
            profiles,
            attributes=as_names(attribute),
            groups=as_names(group),
            kernel=kernel,
            seed=seed,
            progress=progress,
            **{name: value for name, value in options.items() if value is not None},
        )


@public_call
def compare_words(
    run: "Run",
    *,
    apx: PathLike | None = None,
    crawl: "Run | str | None" = None,
    attribute: Names = (),
    output: PathLike | None = None,
    seed: int = 0,
) -> "Rows[ProfileAgreement]":
    """Compare the words that profiles tie to groups with those that a model finds probable of
    their names, and those that it says when asked about the groups by name.

    Frame columns: source, groups, words, mrr, mrr_low, mrr_high, expected, p_value.

    Args:
        run: the run of profiles, or an import of some.
        apx: an APX table, as written by `kgbias probe apx -o`.
        crawl: a run whose groups, by any of their names, are those of the profiles, such as
            "Arab women".
        attribute: the attributes to use (none: all).
        output: a folder for each comparison's figure (SVG, PDF, PNG) and LaTeX table.
        seed: the random seed of the intervals and permutations.

    Raises:
        UsageError: nothing to compare with was given, or nothing is shared.
    """
    from kgbias.graph.profiles import list_attributes, list_profile_labels
    from kgbias.graph.selection import select_statements
    from kgbias.methods.profiles.agreement import (
        compare_with_apx,
        compare_with_crawl,
        find_group_labels,
        profile_agreement_rows,
    )
    from kgbias.methods.profiles.contents import require_profiles
    from kgbias.methods.profiles.words import word_shifts
    from kgbias.probe.apx import read_apx

    if apx is None and crawl is None:
        raise UsageError("say what to compare with: `apx`, `crawl` or both")
    table = None if apx is None else read_apx(Path(apx))
    crawl_run = None if crawl is None else run.context.find(crawl)
    profiles = require_profiles(run.stored)
    attributes = as_names(attribute) or list_attributes(profiles)
    with run.context.working() as progress:
        words = word_shifts(
            profiles,
            list_profile_labels(profiles, "group"),
            attributes,
            shown=len(profiles),
            draws=0,
            progress=progress,
        )
    agreements = []
    if table is not None:
        agreements.append(compare_with_apx(words, table, source=str(apx), seed=seed))
    if crawl_run is not None:
        names = {g.id: (g.name, *g.variants) for g in crawl_run.groups}
        labels = find_group_labels(profiles, names)
        triples = list(select_statements(crawl_run).triples)
        agreements.append(
            compare_with_crawl(words, triples, labels, source=crawl_run.name, seed=seed)
        )
    if output is not None:
        from kgbias.methods.profiles.report_part import write_agreement

        write_agreement(agreements, Path(output), run.name)
    return profile_agreement_rows(agreements)


@public_call
def write_page(
    run: "Run", path: PathLike = "profiles.html", *, name: Names = (), title: str | None = None
) -> Path:
    """Write the profiles as a page that works offline and shows those of two names side by
    side. Returns its path.

    Args:
        run: the run of profiles, or an import of some.
        path: the file.
        name: the names to begin with, one or two (none: the first of two groups).
        title: the page's title (None: the name of the run).
    """
    from kgbias.methods.profiles.contents import require_profiles
    from kgbias.methods.profiles.report_part import write_profile_page

    write_profile_page(
        run.stored, require_profiles(run.stored), Path(path), names=as_names(name), title=title
    )
    return Path(path)
