"""The output layer of a causal model, without ever holding [batch, length, vocabulary]."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# Elements of one tile of logits: about a megabyte, so that it stays in a processor's cache; on a
# GPU large enough to keep it busy.
_CPU_ROWS, _CPU_COLUMNS = 512, 1024
_GPU_ROWS, _GPU_COLUMNS = 8192, 16384


class Head:
    """log p(token | hidden state), with what some architectures do to their logits: a scale
    (Cohere, Granite), a soft cap (Gemma). Whether this is all that a model does is for the self-
    check of the engine to say."""

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
        return self._shaped(own).double() - total[nodes]

    def _normaliser(self, hidden: "torch.Tensor") -> "torch.Tensor":
        """log of the sum over the vocabulary of exp(logit), [n], float64, by tiles with a running
        sum."""
        import torch

        on_cpu = hidden.device.type == "cpu"
        rows = _CPU_ROWS if on_cpu else _GPU_ROWS
        columns = _CPU_COLUMNS if on_cpu else _GPU_COLUMNS
        totals = []
        for states in hidden.split(rows):  # type: ignore[no-untyped-call]
            running = None
            tile = states.new_empty(len(states) * columns)
            for start in range(0, len(self._weight), columns):
                weight = self._weight[start : start + columns]
                logits = tile[: len(states) * len(weight)].view(len(states), len(weight))
                torch.mm(states, weight.T, out=logits)
                logits = logits.float()
                if self._bias is not None:
                    logits += self._bias[start : start + columns].float()
                logits = self._shaped(logits)
                most = logits.amax(1, keepdim=True)
                # In float64, or the rounding of many small steps adds up.
                summed = logits.sub_(most).exp_().sum(1).double().log_().add_(most[:, 0])
                running = summed if running is None else torch.logaddexp(running, summed)
            assert running is not None
            totals.append(running)
        return torch.cat(totals)

    def _shaped(self, logits: "torch.Tensor") -> "torch.Tensor":
        """What the architecture does to its logits, in place."""
        if self._scale != 1.0:
            logits *= self._scale
        if self._cap:
            logits.div_(self._cap).tanh_().mul_(self._cap)
        return logits
