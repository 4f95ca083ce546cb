"""What the profiles of a run give away."""

from typing import TYPE_CHECKING

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile
from kgbias.names import Names, as_names
from kgbias.study.rows import Rows
from kgbias.study.view import RunView

if TYPE_CHECKING:
    from kgbias.profiles import ProfileAnalysis


class Profiling(RunView):
    """What the profiles of a run give away; a part of `Run`."""

    def profiles(self) -> Rows[Profile]:
        """The characters that were written for given names, in the order of the run.

        Frame columns: name, group (as statements name it), what the name stands for (label,
        ethnicity, gender), and a column for each attribute with its values as a list.
        """
        from kgbias.graph.profiles import attributes_of
        from kgbias.profiles.labels import labelled

        names = {g.id: g.name for g in self.stored.groups}
        found = labelled(self.stored.profiles(), names)
        attributes = attributes_of(found)
        about = ("name", "group", "label", "ethnicity", "gender")

        def record(p: Profile) -> dict[str, object]:
            labels = (p.labels.get(kind, "") for kind in ("group", "ethnicity", "gender"))
            row: dict[str, object] = dict(
                zip(about, (p.name, names.get(p.group_id, ""), *labels), strict=True)
            )
            return row | {a: list(p.values(a)) for a in attributes if a not in row}

        columns = (*about, *(a for a in attributes if a not in about))
        return Rows(found, record, columns)

    def analyse_profiles(
        self,
        *,
        attribute: Names = (),
        group: Names = (),
        repeats: int | None = None,
        permutations: int | None = None,
        draws: int | None = None,
        seed: int = 0,
    ) -> "ProfileAnalysis":
        """Whether groups can be told apart by the profiles that were written of their names, by
        which attributes and by which words (Siddique et al. 2024, section 6).

        Args:
            attribute: the attributes to look at (none: all).
            group: the groups to tell apart, by label such as "ARAB F" (none: all).
            repeats: random splits, 70 to 30 (None: 20).
            permutations: deals of the labels over names for chance (None: 99).
            draws: of the bootstrap of words (None: 500).
            seed: the random seed of all three.

        Raises:
            UsageError: the run holds no profiles, or an attribute or group is not there.
        """
        from kgbias.profiles import analyse

        found = list(self.profiles())
        if not found:
            raise UsageError(
                f"run {self.name!r} holds no profiles: import some with `format` profiles, or make "
                "them with kgbias profiles"
            )
        options = {"repeats": repeats, "permutations": permutations, "draws": draws}
        with self._study.working() as progress:
            return analyse(
                found,
                attributes=as_names(attribute),
                groups=as_names(group),
                seed=seed,
                progress=progress,
                **{name: value for name, value in options.items() if value is not None},
            )
