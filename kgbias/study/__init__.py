"""The front door: a study is a store of runs, and everything else is a method of one of the two.
`kgbias` itself exports what is here."""
