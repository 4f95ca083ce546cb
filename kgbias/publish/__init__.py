"""A run as a data set that others can load, cite and reproduce."""

from kgbias.io.files import find_altered
from kgbias.publish.folder import publish
from kgbias.publish.recipe import Recipe, read_published_statements, read_recipe

__all__ = ["Recipe", "find_altered", "publish", "read_published_statements", "read_recipe"]
