"""What to try when few answers of a crawl are well-formed."""

from collections.abc import Mapping

from kgbias.models.base import Form

FEW = 0.5  # the share of well-formed answers below which a crawl says so
ENOUGH = 20  # answers; fewer say little


def few_well_formed(
    outcomes: Mapping[str, int],
    reasons: Mapping[str, int],
    *,
    form: Form,
    structured: bool = False,
    prompts: str = "",
) -> str | None:
    """A line that says that few answers were well-formed, why, and which parameters to change; None
    where most were, or where there are too few to say.

    `outcomes` and `reasons` count the answers so far, every attempt, by their outcome and, for the
    unparsable ones, by reason. Refusals and failed requests say nothing of the form and do not
    count; an echo is well-formed, and so is nonsense. `prompts` is the name of the pack.
    """
    unparsable = outcomes.get("unparsable", 0)
    answers = sum(outcomes.get(name, 0) for name in ("ok", "echo", "nonsense")) + unparsable
    if answers < ENOUGH or unparsable <= (1 - FEW) * answers:
        return None
    reason = max(reasons, key=lambda name: reasons[name], default="")
    most = f" (most often: {reason})" if reason else ""
    if form == "completion":
        remedies = ["`form` chat if the model is made for chat"]
    else:
        remedies = [] if structured else ["`structured`, where the server knows schemas"]
        remedies.append("`form` completion")
    if prompts == "salinas-2023":
        remedies.append("`prompts` sentences")
    return (
        f"only {answers - unparsable} of {answers} answers were well-formed{most}: try "
        f"{', or '.join(remedies)}"
    )
