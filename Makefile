# Each command makes its virtual environment first, and again only if the dependencies have changed.

PYTHON ?= python3
VENV ?= .venv
# Passed on to the command: make sweep ARGS="--primitive sort"
ARGS ?=

PIP := $(VENV)/bin/python -m pip --disable-pip-version-check
READY := $(VENV)/.ready

.PHONY: sweep test lint docs site explorer bench demo demo-test reach

sweep: $(READY)
	$(VENV)/bin/python -m tools.sweep $(ARGS)

test: $(READY)
	$(VENV)/bin/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal $(ARGS)

lint: $(READY)
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/lint-imports --no-logo
	$(VENV)/bin/mypy

docs: $(READY)
	$(VENV)/bin/python -m tools.regenerate_docs $(ARGS)

# The documentation as a site in site/, which needs no server and no network. Broken links are errors.
site: export NO_MKDOCS_2_WARNING := 1
site: $(READY)
	$(VENV)/bin/mkdocs build --strict $(ARGS)

# A page to look at the results of a sweep with.
explorer: $(READY)
	$(VENV)/bin/python -m tools.explorer $(or $(ARGS),sweep.sqlite --output explorer.html)

bench: $(READY)
	$(VENV)/bin/python -m tools.bench $(ARGS)

# The page of g3doc/demo; takes five minutes.
demo: $(READY)
	$(VENV)/bin/python -m tools.demo $(ARGS)

# Uses the page in Chromium, which has to be installed.
demo-test: demo
	$(VENV)/bin/python -m pytest tests/demo/in_browser.py tests/demo/runner_in_browser.py $(ARGS)

# Records which sources tests reach, by which .ci/run selects them. Needs Python 3.12.
reach: $(READY)
	$(VENV)/bin/python -m tools.ci.record $(ARGS)

$(READY): setup.cfg pyproject.toml
	@echo "Installing JAX, TensorFlow and what tests need into $(VENV), once. This takes some minutes."
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --progress-bar on --editable ".[cpu,cli,models,frameworks,onnx,tfjs,tflite,litertlm,quantization,openvino,browser,demo,ray,dev,site,notebooks]"
	$(VENV)/bin/python -m lowering.export.tfjs.install
	touch $@
