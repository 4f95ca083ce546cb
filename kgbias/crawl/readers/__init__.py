"""Readers of answers: each turns one raw answer into a predicate and an object, or says why not."""
