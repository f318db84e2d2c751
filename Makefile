# make demo    set everything up and find NDR and PDR of a simulated device and of a real Linux router
# make test    set everything up and pass all tests
# make check   formatting, lints, types, layers, imports, sources, generated files
# make bench   packet-hops per second and CPU time of commands, compared with ns-3
# make docs    the documentation as HTML in docs/site
SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV ?= .venv
export VENV
BIN := $(VENV)/bin
PROFILE ?= test

.PHONY: help demo setup test test-rust test-python test-live check check-rust check-python bench docs docs-rust docs-python fuzz constraints clean

help:
	@sed -n 's/^# make/make/p' Makefile

demo:
	@scripts/setup demo
	@$(BIN)/python examples/demo.py

setup:
	@scripts/setup $(PROFILE)

# Every part runs, also where one before it has failed.
test: setup
	@failed=; for part in test-rust test-python test-live; do \
		$(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	done; \
	[ -z "$$failed" ] || { echo "make test: failed:$$failed" >&2; exit 1; }

test-rust:
	PROPTEST_RNG_SEED=1 cargo test --release --workspace --exclude weir-py --locked --quiet --no-fail-fast

test-python: setup
	$(BIN)/python -m pytest -n 2 -m "not live" -q

# Real packets through the kernel: two tests at a time, most of which wait for paths; no time of a processor is asserted.
test-live: setup
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -m live -n 2 -q

check: check-rust check-python

check-rust: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/python scripts/generate_spec.py --check

check-python: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_sources.py
	$(BIN)/python scripts/check_recipes.py
	$(BIN)/python scripts/check_prose.py
	$(BIN)/python scripts/check_imports.py
	$(BIN)/typos

# Neither the test tools nor a report is needed; ns-3 is, to compare with: apt-get install libns3-dev g++
bench:
	@scripts/setup demo
	@missed=0; for part in compare whole_program fabric; do $(BIN)/python benches/$$part.py || missed=1; done; exit $$missed

docs: docs-rust docs-python
	@echo "Open docs/site/index.html and target/doc/weir_core/index.html"

docs-rust: setup
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet

docs-python: setup
	$(BIN)/sphinx-build -W --keep-going -q -E -b html docs docs/site
	$(BIN)/python scripts/check_links.py docs/site

# Long property runs; the ordinary tests use few cases and fixed seeds.
fuzz: setup
	PROPTEST_CASES=20000 cargo test --release --workspace --exclude weir-py --locked --quiet
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m "not live" -q tests

# Freeze the versions that setup installs.
constraints:
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate --no-emit-index-url --no-emit-find-links --python-version 3.11 \
		--all-extras --group build --group test --group check --group docs pyproject.toml -o constraints.txt

clean:
	rm -rf target $(VENV) docs/site
