"""The output layer of a causal model, without ever holding [batch, length, vocabulary]."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kgbias.models.load import float64

if TYPE_CHECKING:
    import torch

# Elements of one tile of logits: about a megabyte, so that it stays in a processor's cache; on a
# GPU large enough to keep it busy.
_CPU_ROWS, _CPU_COLUMNS = 512, 512
_GPU_ROWS, _GPU_COLUMNS = 8192, 16384
_SMALL, _LARGE = 1e-30, 1e35  # between these a sum of exponentials is exact enough in float32


class Head:
    """log p(token | hidden state), with what some architectures do to their logits: a scale
    (Cohere, Granite), a soft cap (Gemma). The engine's self-check finds models that do more than
    this."""

    def __init__(self, model: Any) -> None:
        config = model.config.get_text_config()
        layer = model.get_output_embeddings()
        self._weight = layer.weight
        self._bias = getattr(layer, "bias", None)
        self._scale = float(getattr(config, "logit_scale", None) or 1.0)
        self._scale *= float(getattr(config, "lm_head_multiplier", None) or 1.0)
        self._scale /= float(getattr(config, "logits_scaling", None) or 1.0)
        self._cap = float(getattr(config, "final_logit_softcapping", None) or 0.0)

    def log_probabilities(
        self, hidden: "torch.Tensor", nodes: "torch.Tensor", tokens: "torch.Tensor"
    ) -> "torch.Tensor":
        """log p(tokens[e] | hidden[nodes[e]]) for each e, float64; `hidden` is [n, width]."""
        total = self._normaliser(hidden)
        own = (hidden[nodes].float() * self._weight[tokens].float()).sum(-1)
        if self._bias is not None:
            own += self._bias[tokens].float()
        values: torch.Tensor = float64(self._shaped(own)) - float64(total[nodes])
        return values

    def _normaliser(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """log of the sum over the vocabulary of exp(logit), [n], as `_summed` has it."""
        import torch

        rows = _CPU_ROWS if hidden.device.type == "cpu" else _GPU_ROWS
        totals = []
        for states in hidden.split(rows):  # type: ignore[no-untyped-call]
            total = self._summed(states)
            # Logits beyond +-80 leave the range of float32: once more, with the maximum taken out.
            if not bool(((total > _SMALL) & (total < _LARGE)).all()):
                most = self._most(states)
                total = self._summed(states, most).log() + most
            else:
                total = total.log()
            totals.append(total)
        return torch.cat(totals)

    def _summed(self, states: "torch.Tensor", less: "torch.Tensor | None" = None) -> "torch.Tensor":
        """Sum over the vocabulary of exp(logit - less), by tiles, the running sum in float64
        (float32 on MPS, which has no other)."""
        import torch

        wide = torch.float32 if states.device.type == "mps" else torch.float64
        total = torch.zeros(len(states), dtype=wide, device=states.device)
        for logits in self._tiles(states):
            if less is not None:
                logits = logits.sub_(less[:, None])
            total += logits.exp_().sum(1)
        return total

    def _most(self, states: "torch.Tensor") -> "torch.Tensor":
        """The largest logit of each state."""
        import torch

        return torch.stack([logits.amax(1) for logits in self._tiles(states)]).amax(0)

    def _tiles(self, states: "torch.Tensor") -> "Iterator[torch.Tensor]":
        """Logits of some columns of the vocabulary at a time, float32; each is overwritten by the
        next."""
        import torch

        columns = _CPU_COLUMNS if states.device.type == "cpu" else _GPU_COLUMNS
        tile = states.new_empty(len(states) * columns)
        for start in range(0, len(self._weight), columns):
            weight = self._weight[start : start + columns]
            logits = tile[: len(states) * len(weight)].view(len(states), len(weight))
            torch.mm(states, weight.T, out=logits)
            logits = logits.float()
            if self._bias is not None:
                logits += self._bias[start : start + columns].float()
            yield self._shaped(logits)

    def _shaped(self, logits: "torch.Tensor") -> "torch.Tensor":
        """What the architecture does to its logits, in place."""
        if self._scale != 1.0:
            logits *= self._scale
        if self._cap:
            logits.div_(self._cap).tanh_().mul_(self._cap)
        return logits
