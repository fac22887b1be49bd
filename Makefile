# Every target sets up what it needs in .venv and leaves the system Python alone. `make` alone prints this list.
.DEFAULT_GOAL := help
.PHONY: help install run llm mcp mlflow wandb cluster hermes check test test-fast lint types layers bench docs dist package sbom lock clean
.SUFFIXES:
MAKEFLAGS += --no-print-directory
# Compiled files are kept even where the surroundings say otherwise: every process of the tests would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python

# A stamp is named after what it installed and where: new pins or a moved checkout make a new name, so a call that has
# nothing to do costs nothing.
key = $(shell { pwd; cat $(1) pyproject.toml; } | cksum | tr -d ' ')
RUN_STAMP := $(VENV)/.installed-run-$(call key,requirements/run.txt)
LLM_STAMP := $(VENV)/.installed-llm-$(call key,requirements/llm.txt)
MCP_STAMP := $(VENV)/.installed-mcp-$(call key,requirements/mcp.txt)
MLFLOW_STAMP := $(VENV)/.installed-mlflow-$(call key,requirements/mlflow.txt)
WANDB_STAMP := $(VENV)/.installed-wandb-$(call key,requirements/wandb.txt)
CLUSTER_STAMP := $(VENV)/.installed-cluster-$(call key,requirements/cluster.txt)
HERMES_VENV := .venv-hermes
HERMES_STAMP := $(HERMES_VENV)/.installed-hermes-$(call key,requirements/hermes.txt)
DEV_STAMP := $(VENV)/.installed-dev-$(call key,requirements/dev.txt)

help: ## Show this list
	@echo "FinSkillBench: make run, make test, or one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

run: $(RUN_STAMP) ## Build the paper's suite if it is missing, run the baselines on it, print the table, write the page (ARGS="--suite desk")
	@$(VENV)/bin/finskillbench run --page $(ARGS)

install: $(RUN_STAMP) ## Set up .venv with what runs need, and nothing else

llm: $(LLM_STAMP) ## Set up .venv for hosted models

mcp: $(MCP_STAMP) ## Set up .venv for agents that speak the Model Context Protocol

mlflow: $(MLFLOW_STAMP) ## Set up .venv to export runs to MLflow

wandb: $(WANDB_STAMP) ## Set up .venv to export runs to Weights & Biases

cluster: $(CLUSTER_STAMP) ## Set up .venv to hand work to a Dask cluster

hermes: $(HERMES_STAMP) ## Set up .venv-hermes for the second harness, the Hermes Agent (run --harness hermes)

check: ## What continuous integration runs: tests, format and style, types, layers
	@.ci/run

# Work stealing gives each process a half in the order of the files, so that what a file sets up is set up once.
test: $(DEV_STAMP) ## Run all tests on two processes (ARGS="tests/cli" for some of them)
	@$(PY) -m pytest -n 2 --dist worksteal $(ARGS)

test-fast: $(DEV_STAMP) ## The tests to run while you work: none that are slow or need a whole edition (about a minute)
	@$(PY) -m pytest -n 2 --dist worksteal -q -m "not slow and not edition" $(ARGS)

lint: $(DEV_STAMP) ## Check format and style
	@$(PY) -m ruff format --check
	@$(PY) -m ruff check

types: $(DEV_STAMP) ## Check types
	@$(PY) -m basedpyright --pythonpath $(PY)

layers: $(DEV_STAMP) ## Check that no layer imports one above it
	@$(VENV)/bin/lint-imports --no-logo

bench: $(DEV_STAMP) ## Run every benchmark; each prints both sides and their ratio
	@for file in benchmarks/*.py; do echo "== $$file"; $(PY) "$$file" || exit 1; done

docs: $(DEV_STAMP) ## Build the site into build/site, its tutorials run anew (no network; about two minutes)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

dist: $(DEV_STAMP) ## Build wheel and source distribution into dist, of tracked files alone
	@release/build.sh $(PY) dist

package: dist ## Install both outside of the repository and run them there
	@$(PY) -m release.trial dist

sbom: $(DEV_STAMP) ## Write the bill of materials of the pinned packages into dist (CycloneDX)
	@$(PY) -m release.sbom dist/sbom.cdx.json

lock: ## Pin again what pyproject.toml and requirements/*.in ask for (needs uv; ARGS=--upgrade for newer versions)
	@requirements/lock.sh $(ARGS)

clean: ## Remove the environment and every cache of the tools; runs and editions stay
	@rm -rf $(VENV) $(HERMES_VENV) build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_STAMP):
	@requirements/install.sh run $(VENV)
	@touch $@

$(LLM_STAMP):
	@requirements/install.sh llm $(VENV)
	@touch $@ $(RUN_STAMP)

$(MCP_STAMP):
	@requirements/install.sh mcp $(VENV)
	@touch $@ $(RUN_STAMP)

$(MLFLOW_STAMP):
	@requirements/install.sh mlflow $(VENV)
	@touch $@ $(RUN_STAMP)

$(WANDB_STAMP):
	@requirements/install.sh wandb $(VENV)
	@touch $@ $(RUN_STAMP)

$(CLUSTER_STAMP):
	@requirements/install.sh cluster $(VENV)
	@touch $@ $(RUN_STAMP)

$(HERMES_STAMP):
	@requirements/install.sh hermes $(HERMES_VENV)
	@touch $@

$(DEV_STAMP):
	@requirements/install.sh dev $(VENV)
	@touch $@ $(RUN_STAMP) $(LLM_STAMP) $(MCP_STAMP) $(MLFLOW_STAMP) $(WANDB_STAMP) $(CLUSTER_STAMP)
