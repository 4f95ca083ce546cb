"""What computes or keeps in the place of the core's own: stores (neo4j), engines of models (vllm),
executors of work (ray), and batches of providers (batches). Each has a folder of its own and adds
what it has by entry points, as methods do (`kgbias.methods`); the core imports none, and without
the folder of one all else works."""
