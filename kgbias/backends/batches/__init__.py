"""Batches of requests at providers: what all have in common (`base`), and each provider's own."""
