"""The profiles of a run, read from the store."""

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile, list_attributes
from kgbias.graph.store import StoredRun
from kgbias.io.columns import Column
from kgbias.io.rows import Rows
from kgbias.io.wording import how
from kgbias.methods.profiles.config import add_labels


def profile_rows(run: StoredRun) -> Rows[Profile]:
    """The profiles of a run, each with its group and a column for each attribute."""
    names = {g.id: g.name for g in run.groups}
    profiles = add_labels(run.profiles(), names)
    attributes = list_attributes(profiles)
    about = (
        Column("name"),
        Column("group", get=lambda profile: names.get(profile.group_id, "")),
        Column("label", get=lambda profile: profile.labels.get("group", "")),
        Column("ethnicity", get=lambda profile: profile.labels.get("ethnicity", "")),
        Column("gender", get=lambda profile: profile.labels.get("gender", "")),
    )
    taken = {column.name for column in about}
    return Rows(profiles, [*about, *(_attribute_column(a) for a in attributes if a not in taken)])


def _attribute_column(attribute: str) -> Column:
    """The values of an attribute, as a list."""
    return Column(attribute, get=lambda profile: list(profile.values_of(attribute)))


def require_profiles(run: StoredRun) -> list[Profile]:
    """The profiles of a run. Raises UsageError if there are none."""
    profiles = list(profile_rows(run))
    if not profiles:
        raise UsageError(
            f"run {run.name!r} has no profiles: import some with `format` profiles, or write "
            f"some with {how('profiles.write_profiles', 'kgbias profiles')}"
        )
    return profiles
