"""What profiles will cost, before any is asked for."""

from dataclasses import dataclass

from kgbias.profiles.config import ProfileConfig


@dataclass(frozen=True, slots=True)
class ProfilesPrice:
    """How many requests there are if every answer is read at the first attempt, and at most, with
    the tokens that the answers may then hold."""

    names: int
    groups: int
    samples: int
    form: str
    requests: int
    requests_at_most: int
    answer_tokens_at_most: int


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
    )
