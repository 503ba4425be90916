# `make demo` and `make test` set up what they need in .venv and touch nothing else.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
BIN := .venv/bin
# Tests that run side by side; most of their time is waiting for processes, so two cores have time for a third.
JOBS ?= 3
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint bench format generate clean

demo: .venv/installed
	$(BIN)/promptside demo

# The editors are real: `.venv/editors` brings them, as root through apt too, once into ~/.cache/promptside-tests.
# What fails is run once more, alone: the first failure stays in the output, and is a fault to be mended all the same.
test: .venv/ready lint clients/vscode/promptside.vsix
	$(BIN)/python -m pytest --whole --numprocesses $(JOBS) --dist worksteal || { test $$? -eq 1 \
		&& echo "Once more, one at a time: what failed. A test that passes only now has a race in it; see above." \
		&& $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; }

lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# What PERFORMANCE means here: ratios to floors measured in the same run.
bench: .venv/ready
	$(BIN)/python bench

format: .venv/ready
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The protocol in the editors' languages and as a document; a test fails when they are stale.
generate: .venv/installed
	mkdir -p clients/vscode/src clients/neovim/lua/promptside
	$(BIN)/python -m promptside_protocol ts > clients/vscode/src/protocol.ts
	$(BIN)/python -m promptside_protocol lua > clients/neovim/lua/promptside/protocol.lua
	$(BIN)/python -m promptside_server.generate ts > clients/vscode/src/ours.ts
	$(BIN)/python -m promptside_server.generate lua > clients/neovim/lua/promptside/ours.lua
	$(BIN)/python -m promptside_protocol.document > docs/protocol.md

.venv/installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv \
		|| { echo "$(PYTHON) has no venv; on Debian: apt-get install python3-venv"; exit 1; }
	$(PIP) install --upgrade "pip>=25.1"
	$(PIP) install --editable .
	@touch $@

.venv/ready: .venv/installed
	$(PIP) install --group dev
	@touch $@

.venv/editors: .venv/ready tests/rig/editor_tools.py clients/vscode/package-lock.json
	$(BIN)/python tests/rig/editor_tools.py bring
	@touch $@

EXTENSION := $(wildcard clients/vscode/*.json clients/vscode/*.md clients/vscode/src/* clients/vscode/webview/* \
	clients/vscode/webview/*/* clients/vscode/walkthrough/*)

clients/vscode/promptside.vsix: .venv/editors $(EXTENSION)
	$(BIN)/python tests/rig/editor_tools.py build

clean:
	rm -rf .venv dist clients/vscode/node_modules clients/vscode/dist clients/vscode/promptside.vsix .mypy_cache .ruff_cache .pytest_cache .hypothesis
