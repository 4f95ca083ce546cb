"""Pairs: the same request with the group or the name in it changed, and what that changes.

A run of pairs is a run of answers: a generation has an answer and no statement, so what needs
statements refuses such a run in one line (`kgbias.graph.selection.need_statements`). Results are
computed when they are asked for and are not kept.
"""
