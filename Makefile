# Everything from nothing: `make demo` and `make test` make their own environment first.
#
#   make demo [DOCS=folder]   index the sample archive, or your own files, answer questions, write pages to demo/
#   make test [ARGS=...]      all tests (ARGS go to pytest, such as ARGS="-k raptor" or ARGS="-m 'not slow'"), one process
#                             a core; JOBS=0 for none beside pytest's own
#   make check                lint, format, types, also of the examples in the documentation
#   make snippets [PAGES=...] the examples of each page in an environment with just what it has one install; takes long
#   make docs                 the documentation, into site/
#   make wheels               one wheel a package, into dist/
#   make release              wheels and sdists of all packages into dist/, checked; everything but the upload
#   make oldest               the tests of the packages at their lower bounds; PYTHON=python3.10 for the oldest of all
#   make constraints          resolve the pins anew
#   make clean                remove what these made, the environment too

PYTHON ?= python3
VENV ?= .venv
JOBS ?= auto
BIN := $(abspath $(VENV))/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
DISTS := $(sort $(wildcard llama_index_*))
NAMES := $(DISTS:llama_index_%=%)

.PHONY: demo test check snippets format docs wheels release oldest constraints clean

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or later is needed; name one with 'make PYTHON=python3.12 ...'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.python constraints.txt requirements-dev.txt $(DISTS:%=%/pyproject.toml)
	$(PIP) install --quiet --constraint constraints.txt --requirement requirements-dev.txt
	touch $@

$(VENV)/.docs: $(VENV)/.installed requirements-docs.txt
	$(PIP) install --quiet --constraint constraints.txt --requirement requirements-docs.txt
	touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py $(if $(DOCS),--docs "$(DOCS)")

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(NAMES:%=-p llama_index.%)
	$(BIN)/python -m tests.page_types

snippets: $(VENV)/.installed
	$(BIN)/python -m tests.clean_pages $(PAGES)

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheels: $(VENV)/.installed
	for dist in $(DISTS); do (cd $$dist && $(BIN)/python -m hatchling build -t wheel -d ../dist) || exit 1; done

release: $(VENV)/.installed
	rm -rf dist
	for dist in $(DISTS); do (cd $$dist && $(BIN)/python -m hatchling build -d ../dist) || exit 1; done
	$(BIN)/uv tool run twine check --strict dist/*
	$(BIN)/python -m pytest tests/test_wheels.py tests/test_imports.py tests/test_release.py
	@echo "dist/ is ready. A tag such as hipporag-v0.1.0 publishes that package; ragkit comes first."

oldest: $(VENV)/.installed
	$(PYTHON) -m venv .venv-oldest
	$(BIN)/uv pip install --quiet --link-mode copy --python .venv-oldest/bin/python --resolution lowest-direct \
		--requirement requirements-oldest.txt
	.venv-oldest/bin/python -m pytest $(NAMES:%=tests/%) tests/lifecycle tests/conformance $(ARGS)

constraints: $(VENV)/.installed
	$(BIN)/uv pip compile --universal --python-version 3.10 --no-annotate --upgrade --quiet \
		$(NAMES:%=--no-emit-package llama-index-%) --custom-compile-command "make constraints" \
		--output-file constraints.txt requirements-docs.txt requirements-stores.txt requirements-dev.txt

clean:
	rm -rf $(VENV) .venv-oldest dist site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
