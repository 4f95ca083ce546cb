"""The front door: a study is a store of runs, and everything else is a method of one or the other.
`kgbias` itself exports these names."""
