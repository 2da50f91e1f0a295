# GRPO Lab: `make run` opens the window, `make test` proves it. Everything is installed into .venv on the first call.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
SOURCES := pyproject.toml constraints.txt
OFFSCREEN := QT_QPA_PLATFORM=offscreen
ARGS ?=
PANEL ?=

.PHONY: run run-lm test test-long lint bench pictures fonts clean help

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.app  ## open the window (without a display: a run offscreen, with pictures)
	@$(BIN)/python -m app $(ARGS)

run-lm: $(VENV)/.app $(VENV)/.lm  ## the same with torch, which the language model needs
	@$(BIN)/python -m app $(ARGS)

test: $(VENV)/.test  ## every test but the long ones
	$(OFFSCREEN) $(BIN)/python -m pytest -q -n 2 -m "not long" $(ARGS)

test-long: $(VENV)/.test  ## kills, fuzzing and endurance
	$(OFFSCREEN) $(BIN)/python -m pytest -q -m long $(ARGS)

lint: $(VENV)/.lint  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy grpo_core app tools benchmarks

bench: $(VENV)/.test  ## the benchmarks, side by side
	$(OFFSCREEN) $(BIN)/python -m benchmarks $(ARGS)

pictures: $(VENV)/.app  ## contact sheets of every panel into pictures/ (PANEL=name for one)
	$(OFFSCREEN) $(BIN)/python -m tools.pictures $(PANEL)

clean:  ## take away what was installed and built
	rm -rf $(VENV) build dist pictures *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.made:
	@bash tools/system_libraries.sh $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.app: $(SOURCES) | $(VENV)/.made
	$(PIP) install -c constraints.txt -e '.[app]'
	@touch $@

$(VENV)/.lm: $(SOURCES) | $(VENV)/.made
	$(PIP) install -c constraints.txt -e '.[app,lm]'
	@touch $@

$(VENV)/.test: $(SOURCES) | $(VENV)/.made
	$(PIP) install -c constraints.txt -e '.[app,lm,test]'
	@touch $@

$(VENV)/.lint: $(SOURCES) | $(VENV)/.test
	$(PIP) install -c constraints.txt -e '.[app,lm,test,lint]'
	@touch $@
