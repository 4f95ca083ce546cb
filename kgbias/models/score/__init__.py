"""Scoring texts under a language model: how probable each token is.

Probes share prefixes (one group, many statements), so texts are packed into a token tree
(`engine`): a shared token is computed once, a leaf is never fed, and the logits of the vocabulary
are reduced tile by tile. The tier that ran is stored with the results.
"""
