# Every target sets up what it needs in .venv and leaves the system Python alone. `make` alone prints this list.
.DEFAULT_GOAL := help
# Sets whose pins contradict ours have environments of their own, .venv-SET.
OWN := hermes harbor local-model nemo-gym openenv receivers trl verifiers
.PHONY: help install run desk llm mcp mlflow wandb cluster human $(OWN) check test test-fast lint words types layers bench docs dist package sbom lock clean
.SUFFIXES:
MAKEFLAGS += --no-print-directory
# Compiled files are kept even where the surroundings say otherwise: every process of the tests would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python

# A stamp is named after what it installed and where: new pins or a moved checkout make a new name, so a call that has
# nothing to do costs nothing.
KEY := $(shell { pwd; cat requirements/*.txt pyproject.toml packages/*/pyproject.toml; } | cksum | tr -d ' ')
stamps = $(1:%=$(VENV)/.installed-%-$(KEY))
DEV_STAMP := $(call stamps,dev)
# After an interrupted installation no stamp holds.
$(foreach venv,$(VENV) $(OWN:%=.venv-%),$(if $(wildcard $(venv).unfinished),$(shell rm -f $(venv)/.installed-*)))

help: ## Show this list
	@echo "FinSkillBench: make run, make test, or one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

run: $(call stamps,run $(if $(filter desk all --suite=desk --suite=all,$(ARGS)),desk)) ## Build the paper's suite if it is missing, run the baselines on it, print the table, write the page (ARGS="--suite desk")
	@$(VENV)/bin/finskillbench run --page $(ARGS)

install: $(call stamps,run) ## Set up .venv with what runs need, and nothing else

desk: $(call stamps,desk) ## Set up .venv with the desk suite as well

llm: $(call stamps,llm) ## Set up .venv for hosted models

mcp: $(call stamps,mcp) ## Set up .venv for agents that speak the Model Context Protocol

mlflow: $(call stamps,mlflow) ## Set up .venv to export runs to MLflow

wandb: $(call stamps,wandb) ## Set up .venv to export runs to Weights & Biases

cluster: $(call stamps,cluster) ## Set up .venv to hand work to a Dask cluster

human: $(call stamps,human) ## Set up .venv to measure the agreement of human participants

hermes: ## Set up .venv-hermes for the second harness, the Hermes Agent (run --harness hermes)
harbor: ## Set up .venv-harbor, which checks exported Harbor tasks
receivers: ## Set up .venv-receivers, which checks exports as their receivers do
local-model: $(call stamps,llm) ## Play 40 episodes with a small model on this machine; the first call compiles llama.cpp (ARGS="--sample 5")
	@examples/local-model/run.sh $(ARGS)

nemo-gym: ## Set up .venv-nemo-gym to serve environments to NeMo Gym
openenv: ## Set up .venv-openenv to serve environments to OpenEnv, and for Gymnasium
trl: ## Set up .venv-trl to train with TRL (six gigabytes)
verifiers: ## Set up .venv-verifiers to train and evaluate with verifiers
$(OWN): %: .venv-%/.installed-$(KEY)

check: ## What continuous integration runs: tests, format and style, types, layers
	@.ci/run

# Each process runs whole files, so that what a file sets up is set up once; tests/fixtures.py sorts them. Tests wait for
# browsers, servers and processes: three keep two cores busy.
FILES := --dist loadfile --no-loadscope-reorder
test: $(DEV_STAMP) ## Run all tests in three processes (ARGS="tests/cli" for some of them)
	@$(PY) -m pytest -n 3 $(FILES) $(ARGS)

test-fast: $(DEV_STAMP) ## The tests to run while you work: none that are slow or need a whole edition (five minutes)
	@$(PY) -m pytest -n 2 $(FILES) -q -m "not slow and not edition" $(ARGS)

lint: $(DEV_STAMP) ## Check format and style
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check

words: $(DEV_STAMP) ## Check prose by the writing rules of CONTRIBUTING.md
	@$(PY) .ci/words.py

types: $(DEV_STAMP) ## Check types
	@$(PY) -m basedpyright --pythonpath $(PY)

layers: $(DEV_STAMP) ## Check that no layer imports one above it
	@$(VENV)/bin/lint-imports --no-logo

bench: $(DEV_STAMP) ## Run every benchmark; each prints both sides and their ratio
	@for file in benchmarks/*.py; do echo "== $$file"; $(PY) "$$file" || exit 1; done

docs: $(DEV_STAMP) ## Build the site into build/site, its tutorials run anew (no network; about two minutes)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

dist: $(DEV_STAMP) ## Build wheels and source distributions into dist, of tracked files alone
	@release/build.sh $(PY) dist

package: dist ## Install them outside of the repository and run them there
	@$(PY) -m release.trial dist

sbom: $(DEV_STAMP) ## Write the bill of materials of the pinned packages into dist (CycloneDX)
	@$(PY) -m release.sbom dist/sbom.cdx.json

lock: ## Pin again what pyproject.toml and requirements/*.in ask for (needs uv; ARGS=--upgrade for newer versions)
	@requirements/lock.sh $(ARGS)

clean: ## Remove the environment and every cache of the tools; runs and editions stay
	@rm -rf $(VENV) $(VENV).unfinished $(foreach set,$(OWN),.venv-$(set) .venv-$(set).unfinished) build dist src/*.egg-info packages/*/src/*.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src packages tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Every set contains run, and dev contains all but those of OWN. Stamps of other pins no longer hold.
$(VENV)/.installed-%-$(KEY):
	@rm -f $(filter-out %-$(KEY),$(wildcard $(VENV)/.installed-*))
	@requirements/install.sh $* $(VENV)
	@touch $@ $(call stamps,run $(if $(filter dev,$*),desk llm mcp mlflow wandb cluster human))

.venv-%/.installed-$(KEY):
	@requirements/install.sh $* .venv-$*
	@touch $@
