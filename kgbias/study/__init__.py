"""The front door: a study is a store of runs, and everything else is a method of one or the other.
`kgbias` itself exports these names.

Whatever a person can do is a method of `Study` or `Run`: of `Run` if it concerns one run, of
`Study` if it concerns several, or none. What maintains a store is a method of `study.store`
(`maintenance`). Every default, every check and the price of a crawl live here, once: the command
line calls these methods and nothing else.

Both classes hold a `Context` and nothing of each other. Each is put together from parts:

- `Run` (`run`: questions, and what is taken out): what it holds (`run_contents`), what is computed
  from its statements (`measuring`), what models make of them (`probing`).
- `Study` (`study`: making and finding runs): comparisons of runs, and of models with or without
  one (`comparison`), how far the method and its judges can be trusted (`validation`).

A method is a docstring and a call of what does the work. Code that several methods need is in
functions beside them, which take the context or the run.
"""
