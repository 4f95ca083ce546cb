"""Work on a Ray cluster: actors that hold the model (`cluster`), joined by a separate process
(`process`).

Held by tests/backends/ray/integration.
"""
