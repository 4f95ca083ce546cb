"""Scoring texts under a language model: how probable each token is (see docs/architecture.md)."""
