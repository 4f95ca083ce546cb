"""What profiles will cost, before any is asked for."""

from dataclasses import dataclass

from kgbias.budget import Prices, about_tokens
from kgbias.profiles.config import ProfileConfig
from kgbias.profiles.write import prompt_of


@dataclass(frozen=True, slots=True)
class ProfilesPrice:
    """How many requests there are if every answer is read at the first attempt, and at most, with
    the tokens that the answers may then hold; about how many tokens a prompt has, at four
    characters a token; and what that costs, about, where prices were given."""

    names: int
    groups: int
    samples: int
    form: str
    requests: int
    requests_at_most: int
    answer_tokens_at_most: int
    prompt_tokens: int
    prices: Prices | None = None

    @property
    def cost(self) -> float | None:
        """About the money that it costs if every answer is read at the first attempt and as long as
        it may be; None without prices."""
        return self._cost(self.requests)

    @property
    def cost_at_most(self) -> float | None:
        """The same if every attempt is used."""
        return self._cost(self.requests_at_most)

    def _cost(self, requests: int) -> float | None:
        if self.prices is None:
            return None
        limit = self.answer_tokens_at_most / max(1, self.requests_at_most)
        return self.prices.of(requests * self.prompt_tokens, requests * limit)


def profiles_price(config: ProfileConfig) -> ProfilesPrice:
    """The price of this configuration. Asks nothing, opens nothing."""
    most = config.requests * config.max_attempts
    form = "chat" if config.form == "json" else "completion"
    tokens = config.pack.templates[config.template].limits(form)[0]  # type: ignore[arg-type]
    return ProfilesPrice(
        len(config.names),
        len(config.groups),
        config.samples,
        config.form,
        config.requests,
        most,
        most * tokens,
        _prompt_tokens(config),
    )


def _prompt_tokens(config: ProfileConfig) -> int:
    """About the mean over names and attributes."""
    parts = [config.attributes] if config.form == "json" else [(a,) for a in config.attributes]
    tokens = [about_tokens(prompt_of(config, n.name, part)) for n in config.names for part in parts]
    return round(sum(tokens) / max(1, len(tokens)))
