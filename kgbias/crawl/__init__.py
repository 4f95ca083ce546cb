"""The crawl: from seed groups, by rounds of prompts, to triples in the graph.

`seeds` and `strategies` say what is asked, `plans` in which places, `readers` and `parse` what an
answer says, `stopping` when it is enough; `crawler` does it.
"""
