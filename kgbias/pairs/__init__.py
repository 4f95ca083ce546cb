"""Pairs: the same request with the group or the name in it changed, and what that changes."""
