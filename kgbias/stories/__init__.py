"""Stories: what a model invents about a person of whom it is told one thing.

Stories are a kind of run beside crawls, imports and profiles, and not a pack of a crawl. A crawl
asks for one statement and shows what it found before; a story is asked for once, and yields as many
statements as its reader finds. The character that is read from a story is a profile
(`kgbias.graph.profiles`) whose parts know their place in the text. The story itself is the answer
in the log.

Rules read a story (`rule_reader`), or a model does in a second request (`model_reader`), whose
answer is a generation beside the story's. Whatever reads, a value has a place in the story.
"""
