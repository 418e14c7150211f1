# Needs Python 3.11 or newer and make, nothing else: everything goes into .venv.
# `make PYTHON=python3.13 test` chooses the interpreter; `make clean` starts over.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
EXAMPLE := docs/examples/invoice-service.jsonl
WINDOW ?= 30000

# A stamp is written when an installation is complete, so an interrupted one is repeated.
RUNTIME := $(VENV)/.installed
TESTING := $(VENV)/.installed-test
BUILDING := $(VENV)/.installed-build

# An environment is of no use when its interpreter is gone, or when it was made in another folder.
USABLE := $(shell $(BIN)/python -c 'import pip' 2>/dev/null && grep -qsF '$(CURDIR)/' $(BIN)/pip && echo yes)
ifneq ($(USABLE),yes)
.PHONY: $(RUNTIME) $(TESTING) $(BUILDING)
endif

# A stamp, too: the site as it is built from these.
SITE := build/.site
PAGES := $(wildcard *.md) $(shell find docs -type f -not -name '*.pyc')

# The other versions of Python, and where they would differ, if anywhere.
VERSIONS := 3.12 3.13 3.14
HOUSE := tests/test_docs.py tests/test_documented.py tests/test_exports.py tests/test_raises.py tests/test_rooms.py tests/test_tidy.py
CORE := tests/blocks tests/persistence/sessions tests/timeline/test_timeline.py tests/timeline/test_name_conflicts.py tests/timeline/cli/test_replay_command.py

# Who forbids Python to keep what it compiled would compile everything anew in each of the hundreds of processes below.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif
.PHONY: help demo test test-slow test-long rest others checks lint types pyright imports house site pytest slow package pythons core mutants bench tune ladder peers exam adapters clients docs clean ablate

help: ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18
	@echo '  PYTHON=python3.13 chooses the interpreter.'

# What `make test-slow` runs; SLOW=slow where `make test` has run the properties at length (HYPOTHESIS_PROFILE=full).
SLOW ?= slow or property

# The user's own session in a window in which something happens, unless one is given.
OWN_WINDOW = $(if $(filter command environment,$(firstword $(origin WINDOW))),$(WINDOW),auto)

demo: $(RUNTIME) ## replay the example session, then your own: make demo SESSION=path (WINDOW=60k)
	@mkdir -p demo
	@rm -f demo/example.duckdb*
	@echo '== Replaying $(EXAMPLE) in a window of $(WINDOW) tokens, into demo/example.duckdb'
	$(BIN)/foldline replay $(EXAMPLE) --window $(WINDOW) --store demo/example.duckdb --html demo/example.html
ifdef SESSION
	@rm -f demo/own.duckdb*
	@echo '== Replaying $(SESSION), into demo/own.duckdb'
	$(BIN)/foldline replay '$(SESSION)' --window $(OWN_WINDOW) --store demo/own.duckdb --html demo/own.html
	@echo '== Open demo/own.html in a browser'
else
	@echo '== Open demo/example.html in a browser: what was sent at each call, and where every block went'
	@echo '== Now your own: make demo SESSION=path/to/session.jsonl; what those on this machine have cost:'
	@$(BIN)/foldline bill --compare 0
endif

test: $(TESTING) ## check style, types and the documentation, and run the tests (four minutes on two cores)
	@$(MAKE) --no-print-directory lint imports
	@$(MAKE) --no-print-directory --jobs=2 pytest types site

checks: $(TESTING) ## check everything that can be checked without running it
	@$(MAKE) --no-print-directory --keep-going --jobs=2 lint pyright types imports site house

lint: $(TESTING) ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TESTING) ## check types
	$(BIN)/mypy

pyright: $(TESTING) ## check types once more, with another checker
	$(BIN)/pyright

imports: $(TESTING) ## check who may import whom
	$(BIN)/lint-imports

house: $(TESTING) ## check files and words: budgets, docstrings, exports, how long tests may wait
	$(BIN)/python -m pytest -q -m house $(HOUSE)

pytest: $(TESTING) ## run the tests that are not slow
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not slow'

test-slow: $(TESTING) ## the rest: databases with servers, kills, terminals, a browser, all properties at length, the second type checker
	@$(MAKE) --no-print-directory pyright slow

# Three for two processors: each of these waits for servers and processes of its own, again and again.
slow: $(TESTING)
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -q --dist worksteal -m '$(SLOW)' \
	  -n $$($(BIN)/python -c 'import os; print(os.cpu_count() * 3 // 2)')

# Most of it is one process, or waits for one, so two go on at a time; what the others say is printed when they are over.
rest: $(BUILDING) ## what CI runs after `make test`: the slow tests; pyright, packages and other Pythons beside them
	@$(MAKE) --no-print-directory --keep-going --jobs=2 slow others

others: $(BUILDING)
	@mkdir -p build
	@$(MAKE) --no-print-directory --keep-going --jobs=1 pyright package pythons >build/others.log 2>&1; \
	  ended=$$?; cat build/others.log; exit $$ended

# The environment of the sdist has what the wheel needs already: what it lacks itself is installed.
package: $(BUILDING) ## build wheel and sdist, check them, install each where there is nothing of foldline, and try it
	rm -rf dist build/installed build/unpacked
	$(BIN)/python -m build --outdir dist >/dev/null
	$(BIN)/twine check --strict dist/*
	@ls -l dist
	$(PYTHON) -m venv --without-pip build/installed
	for file in dist/*.whl dist/*.tar.gz; do \
	  $(PIP) --python build/installed uninstall --quiet --quiet --yes foldline && \
	  $(PIP) --python build/installed install --quiet --no-compile "$$file" && \
	  (cd build && installed/bin/foldline replay ../$(EXAMPLE) --window $(WINDOW) | tail -1) || exit 1; \
	done
	mkdir -p build/unpacked && tar xzf dist/*.tar.gz -C build/unpacked --strip-components 1
	cd build/unpacked && '$(CURDIR)/$(BIN)/python' -m pytest -q tests/test_docs.py tests/test_examples.py tests/test_packaging.py \
	  -k '(not shows_runs or README) and not (checks_types or compacts or captures or glossary or up_to_date)'

pythons: ## test the core with Python 3.12 to 3.14, as far as they are here
	@for version in $(VERSIONS); do \
	  found=; for python in "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/$$version.*/bin/python python$$version; do \
	    "$$python" -c 'import venv' 2>/dev/null && found="$$python"; \
	  done; \
	  if [ -z "$$found" ]; then echo "== Python $$version cannot be had here: not tested"; continue; fi; \
	  echo "== Python $$version: $$found"; \
	  $(MAKE) --no-print-directory VENV=.venv-$$version PYTHON="$$found" core || exit 1; \
	done

# The fewest packages that these tests need; what the others need is installed once, for the first Python.
core:
	@$(call environment)
	$(PIP) install --quiet --no-compile --editable . hypothesis pytest pytest-socket pytest-xdist syrupy
	HYPOTHESIS_PROFILE=default $(BIN)/python -m pytest -q -n auto $(CORE)

test-long: $(TESTING) ## run all of them at length: forty times the examples, others each time, longer lives (half an hour)
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -q -n auto

mutants: $(TESTING) ## break the code on purpose: which break does no test see? (a day; SAMPLE=400 or MODULES='render/view/_fold.py ...': an hour)
	$(PIP) install --quiet --editable '.[test,docs,mutants]'
	HYPOTHESIS_PROFILE=few PATH='$(CURDIR)/$(BIN)':"$$PATH" $(BIN)/mutmut run $(mutants_chosen)
	$(BIN)/mutmut results | grep -v 'not checked' || true

bench: $(TESTING) ## measure (minutes; nothing else should run); KEEP=1: for the page on performance
	$(BIN)/python -m pytest -q -p benchmark --benchmark-quiet $(if $(KEEP),--keep) benchmarks/bench_*.py

tune: $(TESTING) ## look for the cheapest policy that keeps enough, on the recorded sessions (ten minutes)
	$(BIN)/python -m benchmarks.tune

ladder: $(TESTING) ## what each rung and each order of rungs costs and keeps (a quarter of an hour)
	$(BIN)/python -m benchmarks.ladder

ablate: $(TESTING) ## what each part of the page after a compaction is worth: switched off one at a time (a quarter of an hour)
	$(BIN)/python -m benchmarks.ablate --window $(WINDOW)

peers: $(TESTING) ## other engines and gateways on the same sessions: one environment each, one table (a quarter of an hour)
	$(BIN)/python -m benchmarks.peers.install
	$(BIN)/python -m benchmarks.peers --window $(WINDOW)

exam: $(TESTING) ## a model takes over from what was kept, and answers: make exam MODEL=claude-sonnet-5-5 (its key; EXAM=folder SESSIONS=folder WRITER=, GRADER=model)
	@test -n '$(MODEL)' || { echo 'make exam needs a model: make exam MODEL=claude-sonnet-5-5' >&2; exit 2; }
	$(BIN)/python -m benchmarks.exam '$(MODEL)' --window $(WINDOW) $(if $(EXAM),--exam '$(EXAM)') $(if $(SESSIONS),--sessions '$(SESSIONS)') $(if $(WRITER),--writer '$(WRITER)') $(if $(GRADER),--grader '$(GRADER)')

adapters: $(TESTING) ## each adapter with its real framework: one environment each, one table (LOWEST=1: at our lower bounds)
	$(BIN)/python -m benchmarks.adapters $(if $(LOWEST),--lowest)

clients: $(TESTING) ## real agents (Claude Code, Codex, pi, opencode) at a task, without and with the gateway (npm; CLIENTS='claude pi': only these)
	$(BIN)/python -m benchmarks.clients $(CLIENTS)

docs: $(TESTING) ## generate the reference, refresh outputs, pictures and figures, build the site
	$(BIN)/python docs/build_reference.py
	$(BIN)/python docs/build_pictures.py
	$(BIN)/python docs/build_captures.py
	@$(MAKE) --no-print-directory site

site: $(SITE) ## build the documentation site into build/site, if a page has changed; a warning fails
	@echo '== The site: build/site/index.html'

$(SITE): $(TESTING) $(PAGES)
	$(BIN)/python -m sphinx -E -a -W --keep-going -q -b html -d build/site-cache docs build/site
	@touch $@

clean: ## remove the environment, the demo's output and all caches
	rm -rf $(VENV) .venv-* .peers .adapters .clients .screenshots demo mutants build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml
	@$(call environment)
	@echo '== Installing foldline into $(VENV)'
	$(PIP) install --quiet --editable .
	@touch $@

$(TESTING): pyproject.toml
	@$(call environment)
	@echo '== Installing foldline and its test tools into $(VENV)'
	$(PIP) install --quiet --editable '.[test,docs]'
	@touch $(RUNTIME) $@

# Before the tests: nothing is installed into an environment in which they run.
$(BUILDING): $(TESTING)
	$(PIP) install --quiet build twine
	@touch $@

# What `mutmut` calls the mutants of a file: render/compaction/_range.py gives render.compaction._range.x*
mutants_of = $(if $(1),$(patsubst %.py,'%.x*',$(subst /,.,$(1))))
mutants_chosen = $(if $(SAMPLE),$$($(BIN)/python benchmarks/mutants.py $(SAMPLE)),$(call mutants_of,$(MODULES)))

define environment
if [ '$(USABLE)' != yes ]; then \
  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
    echo 'foldline needs Python 3.11 or newer; choose one: make PYTHON=python3.11 ...' >&2; exit 2; }; \
  echo '== Making $(VENV) with $(PYTHON)'; \
  rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); \
fi
endef
