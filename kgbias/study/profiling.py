"""What the profiles of a run give away."""

from pathlib import Path
from typing import TYPE_CHECKING

from kgbias.errors import UsageError
from kgbias.graph.profiles import Profile
from kgbias.parameters import Names, as_names
from kgbias.study.rows import Rows
from kgbias.study.view import PathLike, RunView

if TYPE_CHECKING:
    from kgbias.profiles import Agreement, ProfileAnalysis
    from kgbias.profiles.classify import Kernel


class Profiling(RunView):
    """What the profiles of a run give away; a part of `Run`."""

    def profiles(self) -> Rows[Profile]:
        """The characters that were written for given names, in the order of the run.

        Frame columns: name, group (as statements name it), what the name stands for (label,
        ethnicity, gender), and a column for each attribute with its values as a list.
        """
        from kgbias.graph.profiles import attributes_of
        from kgbias.profiles.config import labelled

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
        kernel: "Kernel" = "linear",
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
            kernel: of the support vector machine, "linear" or "radial". The radial one takes
                minutes; it gives what the paper has without religion.
            seed: the random seed of all three.

        Raises:
            UsageError: the run holds no profiles, or an attribute or group is not there.
        """
        from kgbias.profiles import analyse

        found = self._profiles()
        options = {"repeats": repeats, "permutations": permutations, "draws": draws}
        with self._study.working() as progress:
            return analyse(
                found,
                attributes=as_names(attribute),
                groups=as_names(group),
                kernel=kernel,
                seed=seed,
                progress=progress,
                **{name: value for name, value in options.items() if value is not None},
            )

    def profile_agreement(
        self,
        *,
        apx: PathLike | None = None,
        crawl: RunView | str | None = None,
        attribute: Names = (),
        output: PathLike | None = None,
        seed: int = 0,
    ) -> list["Agreement"]:
        """Whether the words that profiles tie to groups are those that a model finds probable of
        their names, and those that it says when it is asked about the groups by name.

        Args:
            apx: a table of APX, as `kgbias probe apx -o` writes it.
            crawl: a run whose groups, by name or by another of their names, are those of the
                profiles, such as "Arab women".
            attribute: the attributes to look at (none: all).
            output: a folder for a picture (SVG, PDF, PNG) and a LaTeX table of each.
            seed: of the intervals and permutations.

        Raises:
            UsageError: nothing to compare with was named, or nothing is shared.
        """
        from kgbias.graph.profiles import attributes_of, labels_of
        from kgbias.probe.apx import read_apx
        from kgbias.profiles.agreement import group_labels, with_apx, with_crawl
        from kgbias.profiles.words import shifts

        if apx is None and crawl is None:
            raise UsageError("name what to compare with: `apx`, `crawl` or both")
        table = None if apx is None else read_apx(Path(apx))
        other = self._study.run(crawl) if isinstance(crawl, str) else crawl
        found = self._profiles()
        attributes = as_names(attribute) or attributes_of(found)
        with self._study.working() as progress:
            words = shifts(
                found,
                labels_of(found, "group"),
                attributes,
                shown=len(found),
                draws=0,
                progress=progress,
            )
        agreed = []
        if table is not None:
            agreed.append(with_apx(words, table, source=str(apx), seed=seed))
        if other is not None:
            names = {g.id: (g.name, *g.variants) for g in other.stored.groups}
            labels = group_labels(found, names)
            triples = list(other.counted().triples)
            agreed.append(with_crawl(words, triples, labels, source=other.name, seed=seed))
        if output is not None:
            from kgbias.report.save import write_agreement

            write_agreement(agreed, Path(output), self.name)
        return agreed

    def profile_page(
        self, path: PathLike = "profiles.html", *, name: Names = (), title: str | None = None
    ) -> Path:
        """Write the profiles as a page that works offline, on which those of two names stand side
        by side. Returns its path.

        Args:
            path: the file.
            name: the names to begin with, one or two (none: the first of two groups).
            title: of the page (None: the name of the run).
        """
        from kgbias.report.profiles import write_profile_page

        write_profile_page(
            self.stored, self._profiles(), Path(path), names=as_names(name), title=title
        )
        return Path(path)

    def _profiles(self) -> list[Profile]:
        found = list(self.profiles())
        if not found:
            raise UsageError(
                f"run {self.name!r} holds no profiles: import some with `format` profiles, or make "
                "them with kgbias profiles"
            )
        return found
