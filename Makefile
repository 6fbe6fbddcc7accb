# `make run [FILE=session.jsonl]` and `make test` need nothing but Python 3.11 or newer: they do their own set-up.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first Python on the path that is new enough; `make run PYTHON=/path/to/python3.12` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# make test: the default suite leaves out what is slow or needs a client, an X server or PostgreSQL; CI sets SELECT=
# to run everything. TESTS narrows it to a folder or file, JOBS sets the number of processes.
SELECT ?= not slow and not lab and not xvfb and not postgres
TESTS ?= tests
JOBS ?= 2
# make bench: SCALE=0.1 runs a tenth of the size.
SCALE ?= 1
ONLY ?=

.PHONY: help run test bench lint format screenshots docs package sample clean

help:
	@echo "make run [FILE=session.jsonl]   open the window"
	@echo "make test                       lint, types, default tests"
	@echo "make bench [SCALE=0.1] [ONLY=reader]   measure against a baseline in the same run"
	@echo "make lint                       ruff and mypy alone"
	@echo "make format                     let ruff lay out the code"
	@echo "make screenshots                redo the pictures of resources/docs/screenshots"
	@echo "make docs                       redo README's table of commands and resources/docs/command-line.md"
	@echo "make package                    a folder that runs without Python (PyInstaller)"
	@echo "make sample                     redo the bundled sample session"

$(STAMP): pyproject.toml
	@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "compactoscope: Python 3.11 or newer is needed; found: $(or $(PYTHON),none): apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "compactoscope: this Python cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || { echo "Setting up $(VENV) (once; some 600 MB) ..."; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

# The program itself says what is missing (a system library, a display) before Qt could abort on it.
run: $(STAMP)
	@$(BIN)/python -m inspector $(if $(FILE),"$(FILE)")

lint: $(STAMP)
	@status=0; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/ruff format --check . || status=1; \
	$(BIN)/mypy || status=1; \
	exit $$status

format: $(STAMP)
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

# Everything runs whatever fails, and pytest comes last, so that its closing line is the last line of the output.
test: $(STAMP)
	@$(BIN)/python -m inspector.startup_guard --offscreen
	@status=0; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/ruff format --check . || status=1; \
	$(BIN)/mypy || status=1; \
	QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(if $(strip $(SELECT)),-m "$(SELECT)") $(TESTS) || status=1; \
	exit $$status

bench: $(STAMP)
	@$(BIN)/python -m inspector.startup_guard --offscreen
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m tests.bench --scale $(SCALE) $(ONLY)

screenshots: $(STAMP)
	@$(BIN)/python -m inspector.startup_guard --offscreen
	@$(BIN)/python -m tests.screenshots

docs: $(STAMP)
	@$(BIN)/python -m tests.docs

package: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group package
	@$(BIN)/pyinstaller --noconfirm --log-level WARN --distpath dist --workpath build packaging/compactoscope.spec
	@dist/compactoscope/compactoscope inspect resources/sample/tide-tables.jsonl
	@du -sh dist/compactoscope

sample: $(STAMP)
	@$(BIN)/python -m tests.generator.sample resources/sample

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench build dist
