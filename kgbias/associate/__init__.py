"""Association tests: the WEAT family.

`associate` runs tests by any of `METHODS`, on word vectors or language models, with `Parameters`;
every result is an `Association` that says what it rests on. `find_tests` finds the published word
sets by name. The individual methods are `kgbias.associate.weat.weat` and `.weat.seat`, `.ceat.ceat`
and `.lpbs.lpbs`.
"""
