"""The settings for writing profiles, frozen so that the same command is the same run; and what
given names stand for: the group, ethnicity and gender that a list of names gives them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from kgbias.errors import UsageError, no_such
from kgbias.graph.generation_run import GenerationConfig, pack_identity
from kgbias.graph.profiles import Profile
from kgbias.graph.types import Category, Group
from kgbias.io.tables_in_memory import Table
from kgbias.methods.profiles.pack import (
    DEFAULT,
    REFERENCE,
    ProfileAttribute,
    ProfilePack,
    load_profile_pack,
)
from kgbias.models.kinds import abilities_of, check_structured
from kgbias.parameters import Names, Parameter, as_names
from kgbias.probe.sets import format_people, parse_globalbias_group, read_names_with_raw_groups

DEFAULT_NAMES = "globalbias"


@dataclass(frozen=True, slots=True)
class GivenName:
    """A given name, and what it stands for: `label` as the list says it ("ARAB F"), `group` as
    statements name it ("Arab women")."""

    name: str
    label: str
    group: str
    ethnicity: str = ""
    gender: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels that a profile of this name keeps."""
        labels = {"group": self.label, "ethnicity": self.ethnicity, "gender": self.gender}
        return {kind: label for kind, label in labels.items() if label}


def read_given_names(source: Table) -> list[GivenName]:
    """The names in a list: "globalbias" (400 names of 40 groups), "reference" (those of the
    reference world's peoples and faiths), or a table with the columns name and group."""
    if isinstance(source, str) and source == "reference":
        from kgbias.reference.world import load_truth

        names = [
            GivenName(name, group.name, group.name)
            for group in load_truth().groups.values()
            for name in group.given_names
        ]
    else:
        names = [_parse_name(name, group) for name, group in read_names_with_raw_groups(source)]
    return list(dict.fromkeys(names))


def select_names(names: Iterable[GivenName], groups: Sequence[str]) -> list[GivenName]:
    """The names of these groups, by label or group in any case; all if none is named. Raises
    UsageError for a group that the list does not have."""
    names = list(names)
    wanted_groups = {g.casefold() for g in groups}
    known_groups = {text.casefold() for n in names for text in (n.label, n.group)}
    if unknown := sorted(wanted_groups - known_groups):
        raise UsageError(
            no_such("group", unknown[0], (n.group for n in names), " in the list of names")
        )
    return [
        n
        for n in names
        if not wanted_groups or wanted_groups & {n.label.casefold(), n.group.casefold()}
    ]


def add_labels(profiles: Sequence[Profile], groups: Mapping[str, str]) -> list[Profile]:
    """The profiles with what their names stand for. If an import does not say, that is looked up in
    GlobalBias's list, provided it has every name; otherwise the label is the group in the run,
    whose name `groups` has by id."""
    unlabelled_names = {profile.name for profile in profiles if not profile.labels.get("group")}
    labels_by_name = (
        {n.name: n.labels for n in read_given_names(DEFAULT_NAMES)} if unlabelled_names else {}
    )
    if not unlabelled_names <= labels_by_name.keys():
        labels_by_name = {}
    labelled_profiles = []
    for profile in profiles:
        if not profile.labels.get("group"):
            labels = {
                "group": groups.get(profile.group_id, ""),
                **labels_by_name.get(profile.name, {}),
                **profile.labels,
            }
            profile = replace(profile, labels=labels)
        labelled_profiles.append(profile)
    return labelled_profiles


def _parse_name(name: str, group: str) -> GivenName:
    """GlobalBias writes a group as a pair: "('ARAB', 'F')"."""
    pair = parse_globalbias_group(group)
    if pair is None:
        return GivenName(name, group, group)
    ethnicity, gender = pair
    people = format_people(ethnicity, gender) or group
    return GivenName(name, f"{ethnicity} {gender}", people, ethnicity, gender)


ProfileForm = Literal["json", "attributes"]
PROFILE_FORMS: tuple[ProfileForm, ...] = ("json", "attributes")
CATEGORY = Category("names", "name", "names")


@dataclass(frozen=True, kw_only=True)
class ProfileConfig(GenerationConfig):
    """The parameters of a run of profiles; the defaults are those of Siddique et al. 2024.

    Each of `samples` profiles of each of `names` is requested in one chat message that asks for
    JSON (`form` json), or attribute by attribute as the next line of a form (attributes). If an
    answer is a refusal or cannot be read, the request is repeated, up to `max_attempts` times in
    all. With `structured`, a server is asked to keep to the JSON schema. The paper cuts no tokens.
    """

    kind = "profiles"
    names: tuple[GivenName, ...]
    pack: ProfilePack
    attributes: tuple[ProfileAttribute, ...]
    form: Annotated[
        ProfileForm,
        Parameter(
            "Ask for a whole profile as JSON, or fill in a form attribute by attribute",
            typed=True,
            choices=PROFILE_FORMS,
            unset="json for a server that takes messages, else attributes",
            always=True,
        ),
    ]
    samples: Annotated[
        int, Parameter("Profiles of each name", typed=True, at_least=1, always=True)
    ] = 3
    max_attempts: Annotated[
        int, Parameter("Maximum attempts per answer", at_least=1, always=True)
    ] = 5
    structured: Annotated[
        bool, Parameter("Ask a server to follow the JSON schema", always=True)
    ] = False

    def __post_init__(self) -> None:
        if self.template not in self.pack.templates:
            raise UsageError(f"the prompts {self.pack.name!r} have no template {self.template!r}")
        super().__post_init__()
        if self.structured and self.form != "json":
            raise UsageError("`structured` applies to JSON: `form` must be json")

    @property
    def template(self) -> str:
        return "profile" if self.form == "json" else "attribute"

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that the names stand for; a label is another name of its group."""
        labels = {n.group: n.label for n in self.names}
        return tuple(
            Group(group, CATEGORY.name, (label,) if label != group else ())
            for group, label in labels.items()
        )

    @property
    def categories(self) -> tuple[Category, ...]:
        return (CATEGORY,)

    @property
    def requests(self) -> int:
        """The number of answers requested, without repeated attempts."""
        requests_each = 1 if self.form == "json" else len(self.attributes)
        return len(self.names) * self.samples * requests_each

    def record(self) -> dict[str, Any]:
        names: dict[str, list[str]] = {}
        for n in self.names:
            names.setdefault(n.label, []).append(n.name)
        template = self.pack.templates[self.template]
        return {
            "names": names,
            "attributes": [a.name for a in self.attributes],
            "form": self.form,
            "samples": self.samples,
            "temperature": self.temperature,
            **self.truncation.as_dict(),
            "max_attempts": self.max_attempts,
            "structured": self.structured,
            "seed": self.seed,
            "templates": {template.label: template.hash},
            "pack": pack_identity(self.pack),
        }


def configure_profiles(
    model: str,
    *,
    names: Table | None = None,
    group: Names = (),
    limit: int | None = None,
    attribute: Names = (),
    prompts: str | Path | None = None,
    form: ProfileForm | None = None,
    **parameters: Any,
) -> ProfileConfig:
    """The configuration for profiles by the model with this spec.

    Args:
        model: the spec. The reference model has its own names and attributes.
        names: "globalbias", "reference" or a CSV file with the columns name and group (None: the
            model's own, else globalbias).
        group: only names of these groups, such as "Arab women" or "ARAB F" (none: all).
        limit: only the first `limit` names of each group (None: all).
        attribute: only these attributes of the prompts (none: all).
        prompts: a pack of profiles, by its name or folder.
        form: "json" or "attributes" (None: json for a server, attributes for a local model).
        parameters: `samples`, `temperature`, `min_p` (None: that of the pack, if attributes are
            asked for one by one), `max_attempts`, `structured` and `seed` of `ProfileConfig`.
    """
    reference = model == "reference"
    pack = load_profile_pack(prompts or (REFERENCE if reference else DEFAULT))
    default_list = "reference" if reference else DEFAULT_NAMES
    names_known = read_given_names(default_list if names is None else names)
    names_chosen = _first_names(select_names(names_known, as_names(group)), limit)
    set_parameters = {name: value for name, value in parameters.items() if value is not None}
    able = abilities_of(model)
    if set_parameters.get("structured") and model:
        check_structured(model)
    asked_form: ProfileForm = form or ("json" if able and able.structured != "no" else "attributes")
    if asked_form == "attributes" and able and "completion" not in able.forms:
        raise UsageError(f"{model} only answers chat messages: `form` must be json")
    pack_parameters = (
        {"min_p": pack.min_p}
        if asked_form == "attributes" and set_parameters.get("temperature") != 0
        else {}
    )
    return ProfileConfig(
        names=tuple(names_chosen),
        pack=pack,
        attributes=pack.select_attributes(as_names(attribute)),
        form=asked_form,
        **{**pack_parameters, **set_parameters},
    )


def _first_names(names: Sequence[GivenName], limit: int | None) -> list[GivenName]:
    """The first `limit` names of each group, in the order of the list."""
    if limit is not None and limit < 1:
        raise UsageError("`limit` must be at least 1")
    counts: dict[str, int] = {}
    first_names = []
    for name in names:
        counts[name.label] = counts.get(name.label, 0) + 1
        if limit is None or counts[name.label] <= limit:
            first_names.append(name)
    return first_names
