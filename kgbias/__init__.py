"""kgbias: a map of what a language model believes about groups of people."""

__version__ = "0.1.0"
