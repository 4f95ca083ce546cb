"""The explorer: the whole graph of one or several runs in one page that needs no network."""

from kgbias.explore.page import Explorer as Explorer
from kgbias.explore.page import render_page as render_page
from kgbias.explore.page import write_explorer as write_explorer
