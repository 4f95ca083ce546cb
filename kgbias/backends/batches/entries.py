"""The providers whose batches this backend handles."""

from kgbias.models.batch_providers import BatchProvider

ANTHROPIC = BatchProvider("kgbias.backends.batches.anthropic:AnthropicBatches")
OPENAI = BatchProvider("kgbias.backends.batches.openai:OpenAIBatches")
