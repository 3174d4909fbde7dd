# make demo | test | check | docs | bench | pack CORPUS=dir; each sets up .venv first.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
OUT ?= pack-training

.PHONY: demo test check docs bench pack clean

demo: $(READY)
	-$(VENV)/bin/redraft pull smollm2
	$(VENV)/bin/redraft generate person home problems depression --seed 1 --num 3
	$(VENV)/bin/redraft infill "The mayor said ___ in the city ." --seed 1

test: $(READY)
	$(VENV)/bin/python -m pytest -n logical --maxprocesses 8 --dist loadfile

check: $(READY)
	$(VENV)/bin/ruff check src tests benchmarks
	$(VENV)/bin/ruff format --check src tests benchmarks
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest tests/test_imports.py

# The site, in build/site. Broken links and references are errors.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

bench: $(READY)
	$(VENV)/bin/python benchmarks/sampler.py
	$(VENV)/bin/python benchmarks/xlnet.py

pack: $(READY)
	@test -n "$(CORPUS)" || { echo "give a folder of text to train on: make pack CORPUS=folder" >&2; exit 2; }
	$(VENV)/bin/redraft train pack --corpus "$(CORPUS)" --out "$(OUT)" $(if $(ABOUT),--about "$(ABOUT)")

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) build dist
