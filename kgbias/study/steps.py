"""Steps of a study's file that methods add, beside those of the core (`kgbias.study.plan`).

A method or another package adds a step by an entry point of the group "kgbias.steps", whose name is
that of its list in the file: each [[NAME]] is a call.
"""

from dataclasses import dataclass

from kgbias.io.plugins import PluginTable


@dataclass(frozen=True, slots=True)
class StudyStep:
    """What each entry of a list calls. Its functions are imported when they are called; each is
    given as "module:function".

    Attributes:
        call: given a run or the study, and by name the options of the entry, which is checked
            against its annotations. The entry must name `model` or `models` if the call has no
            default for it; for a run, "same" is the model that the run asked.
        of_study: whether it is given the study, once for each entry; else each run with statements,
            or those that the entry lists in `runs`, before evidence is joined.
        output: the file that an entry without a `path` writes; the call gets it as `output`. "" for
            a call that keeps its results in the store.
        is_done: whether a stored run has the results, given it and the options; "" where the output
            tells.
        files: the options that are files which it reads.
        written: the options that are files or folders which it writes, beside the `output`.
    """

    call: str
    of_study: bool = False
    output: str = ""
    is_done: str = ""
    files: tuple[str, ...] = ()
    written: tuple[str, ...] = ()


STEPS: PluginTable[StudyStep] = PluginTable("step", StudyStep, {}, path_fields=("call", "is_done"))
"""Every such step, by name."""
