"""Truncated sampling: top-k, top-p and min-p as transformers defines them.

The rules apply to logits / temperature in the order of transformers: top-k, then top-p on what
top-k leaves, then min-p. All three keep the most probable tokens, so a threshold score decides what
they keep. That score varies a little with the rounding of a batch. `score_bounds` gives the two
scores between which rounding could decide, and there `Truncation.apply` decides, with transformers'
own code.
"""

from dataclasses import dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, Any

from kgbias.errors import UsageError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Truncation:
    """The tokens that can be drawn.

    `top_k`: the k most probable (Fan et al. 2018). `top_p`: the fewest most probable whose
    probabilities sum to at least p (Holtzman et al. 2020). `min_p`: those at least this fraction as
    probable as the most probable one (Nguyen et al. 2025). None, a `top_p` of 1 and a `min_p` of 0
    cut nothing. Raises UsageError for values out of range.
    """

    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        if self.top_k is not None and (self.top_k < 1 or self.top_k != int(self.top_k)):
            raise UsageError("`top_k` must be a whole number, at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError("`top_p` is a share: above 0 and at most 1")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise UsageError("`min_p` is a share: from 0 to 1")

    def as_dict(self) -> dict[str, float]:
        """The rules that cut something, by name, in the order in which they apply."""
        rules: dict[str, float] = {}
        if self.top_k is not None:
            rules["top_k"] = int(self.top_k)
        if self.top_p is not None and self.top_p < 1:
            rules["top_p"] = float(self.top_p)
        if self.min_p:
            rules["min_p"] = float(self.min_p)
        return rules

    @property
    def is_greedy(self) -> bool:
        """Whether only the most probable token can be drawn."""
        return self.top_k == 1 or self.min_p == 1

    def __bool__(self) -> bool:
        return bool(self.as_dict())

    def apply(self, scores: "torch.Tensor") -> "torch.Tensor":
        """Scores of shape [rows, vocabulary], with -inf for tokens that are cut."""
        from transformers.generation import logits_process

        rules = self.as_dict()
        unread: Any = None  # the tokens so far, which these rules do not look at
        if "top_k" in rules:
            scores = logits_process.TopKLogitsWarper(int(rules["top_k"]))(unread, scores)
        if "top_p" in rules:
            scores = logits_process.TopPLogitsWarper(rules["top_p"])(unread, scores)
        if "min_p" in rules:
            scores = logits_process.MinPLogitsWarper(rules["min_p"])(unread, scores)
        return scores


NO_TRUNCATION = Truncation()
_HEAD_TOKENS = 512  # tokens to try first for top-p: sorting a whole vocabulary takes 20 ms


def score_bounds(
    scores: "torch.Tensor", truncation: Truncation, slack: float
) -> tuple[float, float]:
    """Two scores (low, high) for a row of scores of shape [vocabulary]: a token below `low` is cut
    and one at or above `high` is kept, whatever the rounding, as long as it moves no difference
    between two scores by more than `slack`. `high` is infinite where nothing is certain."""
    rules = truncation.as_dict()
    low, high = -inf, -inf
    top_k = int(rules.get("top_k", len(scores)))
    if top_k < len(scores):
        *_, last_in, first_out = scores.topk(top_k + 1).values.tolist()
        low, high = last_in - slack, max(last_in, first_out + slack)
    if "top_p" in rules:
        low, high = _nucleus_bounds(scores, low, high, rules["top_p"], slack)
    if "min_p" in rules:
        low_edge, high_edge = min_p_bounds(scores.topk(2).values, rules["min_p"], slack)
        low, high = max(low, float(low_edge)), max(high, float(high_edge))
    return low, high


def min_p_bounds(
    best_scores: "torch.Tensor", min_p: float, slack: float
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """`score_bounds` of rows that are cut by min-p alone, from the two best scores of each, of
    shape [..., 2]."""
    import torch

    first_scores, second_scores = best_scores[..., 0], best_scores[..., 1]
    edges = first_scores + log(min_p)
    # The most probable token is certainly kept if it is certain which one it is.
    sure_scores = torch.maximum(first_scores - slack, second_scores)
    return edges - slack, torch.minimum(edges, sure_scores) + slack


def _nucleus_bounds(
    scores: "torch.Tensor", low: float, high: float, top_p: float, slack: float
) -> tuple[float, float]:
    """The bounds of top-p, where those of top-k are `low` and `high`.

    Top-p keeps a token if the tokens above it hold less than top_p of what top-k has left: if
    above / (above + rest) < top_p, where the rest includes the token. It is kept for certain if
    this holds with as much as possible above it and as little as possible in the rest, and cut for
    certain if it fails with as little above and as much in the rest. Tokens within `slack` of it
    can be on either side, tokens between the bounds of top-k can be left or cut, and every weight
    can be off by a factor of exp(slack) against the token's own.
    """
    import torch

    candidates = scores if low == -inf else scores[scores >= low]
    best_score = float(candidates.max())
    weights_of_all = (candidates.double() - best_score).exp()
    total = weights_of_all.sum()  # of what top-k leaves, perhaps and for certain
    certain_mass = total if high == -inf else weights_of_all[candidates >= high].sum()

    def share(above: "torch.Tensor", rest: "torch.Tensor", factor: float) -> "torch.Tensor":
        return above * factor / (above * factor + rest / factor)

    size = _HEAD_TOKENS
    while True:
        head = candidates.topk(min(size, len(candidates))).values.double()
        weights = (head - best_score).exp()
        sums = torch.cat([weights.new_zeros(1), weights.cumsum(0)])  # [n]: of the n most probable
        near_counts = torch.searchsorted(
            -head, slack - head, right=True
        )  # tokens perhaps above, or itself
        far_counts = torch.searchsorted(-head, -slack - head)  # tokens certainly above
        remaining_mass = (certain_mass - sums[near_counts]).clamp(min=0)
        max_shares = share(sums[near_counts] - weights, weights + remaining_mass, exp(slack))
        min_shares = share(
            sums[far_counts].clamp(max=certain_mass), total - sums[far_counts], exp(-slack)
        )
        possible_count = int((min_shares < top_p).sum())  # both shares rise along the head
        # What can be near the last of them must be in the head too.
        if len(head) == len(candidates) or head[possible_count - 1] - slack > head[-1]:
            break
        size *= 8
    sure_tokens = head[:possible_count][
        (max_shares[:possible_count] < top_p) & (head[:possible_count] >= high)
    ]
    return float(head[possible_count - 1]), float(sure_tokens.min()) if len(sure_tokens) else inf
