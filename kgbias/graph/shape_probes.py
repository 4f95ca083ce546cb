"""The edges between statements and the groups, or names of groups, that a model was asked about,
and their models."""

from kgbias.graph.shape_nodes import INTERVAL, UID, Edge, integer, number, numbers, text, texts

RUN = text(run="the run's name")
_ASKED = text(settings="how the model was asked, as JSON pairs", record="its result, as JSON")

PROBES: tuple[Edge, ...] = (
    Edge(
        "PROBED",
        "how probable a statement is of a group",
        (("Statement", "SocialGroup"),),
        (
            *RUN,
            *text(probing_uid="uid of the PROBED_WITH edge", model="name of the model"),
            *number(log_likelihood="of group and statement, natural logarithm"),
            *integer(tokens="of group and statement"),
            *number(statement_log_likelihood="of the statement's tokens after the group"),
            *integer(statement_tokens="of the statement"),
            *number(group_log_likelihood="of the group alone"),
            *integer(
                group_tokens="of the group",
                rank="of the group among those of its category, 1 the most probable",
            ),
            *texts(pieces="the scored tokens as text"),
            *numbers(bits="surprisal of each token, -log2 p"),
            *number(
                lift="in bits, likelier of the group than of the others of its category",
                similarity="cosine of the group and the statement in a model's vectors",
                association="the same against the other groups, in standard deviations",
            ),
        ),
    ),
    Edge(
        "PROBED_WITH",
        "a probing of the run",
        (("Run", "Model"),),
        (*UID, *_ASKED),
    ),
    Edge(
        "CHOSEN",
        "how often a model that had to choose took a group for the one a statement is about",
        (("Statement", "SocialGroup"),),
        (
            *RUN,
            *text(choosing_uid="uid of the PUT_TO edge", model="name of the model"),
            *integer(
                offered="questions in which the group was an option",
                answered="those of them with an answer that could be read",
                chosen="those of them that named the group",
            ),
            *number(share="chosen of answered, 0 to 1"),
            *INTERVAL,
            *number(
                base="the same share over all statements",
                lift="in bits, the share over the base rate; of several names over the names",
                lift_low="lower end of its 95% interval",
                lift_high="upper end of its 95% interval",
                p_value="of a share above that of the other statements, or of several names of a "
                "lift of at most half a bit; corrected",
            ),
            *integer(names="of the group, by which it was offered"),
            *text(verdict="chosen more, leaning, bound to a word or, of one name, of this name"),
            *texts(
                answers="keys of the answers that named the group",
                others="keys of the other answers to questions in which it was an option",
            ),
        ),
    ),
    Edge(
        "PUT_TO",
        "a model that had to choose the groups of the run's statements",
        (("Run", "Model"),),
        (*UID, *_ASKED),
    ),
    Edge(
        "NAME_OF",
        "a group that people speak of by a name",
        (("Name", "SocialGroup"),),
        text(
            mark="why the name is not mixed with the others: narrower, self-description or slur; "
            "empty of one that is"
        ),
    ),
    Edge(
        "PROBED_BEFORE",
        "how probable a statement is after a name",
        (("Name", "Statement"),),
        (
            *RUN,
            *text(believing_uid="uid of the BELIEVED_BY edge", model="name of the model"),
            *numbers(bits="log2 p(statement), at most 0, after the name in each carrier"),
            *number(mean="of these"),
        ),
    ),
    Edge(
        "BELIEVED",
        "what a model's probabilities say of a statement and a group, over the group's names",
        (("Statement", "SocialGroup"),),
        (
            *RUN,
            *text(believing_uid="uid of the BELIEVED_BY edge", model="name of the model"),
            *number(
                lift="in bits, likelier after the group's names than after those of the others of "
                "its category, beyond what each name makes likelier anyway"
            ),
            *INTERVAL,
            *integer(names="of the group that it rests on"),
            *number(
                p_value="of a lift of at most the margin, one-sided",
                q_value="the same, corrected over the group's statements",
                p_zero="of a lift of at most 0",
                q_zero="the same, corrected",
                least="the smallest lift with one of the names left out",
            ),
            *text(
                swayed_by="the name that was left out for it",
                verdict="believed, leaning or bound to a word; empty where nothing is shown",
            ),
        ),
    ),
    Edge(
        "BELIEVED_BY",
        "a model whose probabilities of the run's statements were read after names of groups",
        (("Run", "Model"),),
        (*UID, *_ASKED),
    ),
)
