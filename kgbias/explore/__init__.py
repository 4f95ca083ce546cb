"""The explorer: the whole graph of one or several runs in one page that needs no network.

A page holds all statements, so that filters work without the store, and draws few of them.
`statements` has a row for each, in `columns`; `unit_maps` and `meaning_map` place them; `origins`,
`beliefs` and `choices` have what is unpacked when somebody asks. `page` puts all this into a file,
`server` gives it out block by block. `page/` is the page's script.
"""

from kgbias.explore.page import Explorer as Explorer
from kgbias.explore.page import render_page as render_page
from kgbias.explore.page import write_explorer as write_explorer
