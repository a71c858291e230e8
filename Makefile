# make demo    installs into .venv and runs the main job; prints where the report is
# make test    the same set-up with the development tools, then lint and every test
# make lint    ruff and mypy
# make bench   the project's own figures, as tables

PYTHON ?= python3
VENV ?= .venv
# How many processes test at once; files are not split between them.
TESTERS ?= 2
BIN := $(VENV)/bin

# Compilers take the set-up of llama.cpp's AMX kernels for dead code, and what they make of it crashes at
# the first prompt (GCC 12 does, others are reported). So those kernels are left out, and a wheel in pip's
# cache that has them is not used.
NO_AMX := -DCMAKE_C_FLAGS=-mno-amx-int8 -DCMAKE_CXX_FLAGS=-mno-amx-int8
LLAMA_ARGS := $(strip $(CMAKE_ARGS) $(shell grep -qs amx_tile /proc/cpuinfo && echo "$(NO_AMX)"))
HAS_AMX := import sys, llama_cpp; sys.exit(b"AMX_INT8 = 1" in llama_cpp.llama_print_system_info())

.PHONY: demo test lint bench clean

demo: $(VENV)/.installed
	$(BIN)/edgebench run scenarios/smollm2-135m.yaml

test: lint
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile --benchmark-disable

lint: $(VENV)/.developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict --no-incremental ci/*.py

bench: $(VENV)/.developed
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/report_speed.py
	$(BIN)/python benchmarks/report_browser.py
	$(BIN)/python benchmarks/collectors_cost.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/fidelity.py
	$(BIN)/python benchmarks/perplexity_parity.py
	$(BIN)/python benchmarks/mnn_fidelity.py
	$(BIN)/python benchmarks/mnn_conversion.py
	$(BIN)/python benchmarks/litert_fidelity.py
	$(BIN)/python benchmarks/litert_conversion.py
	$(BIN)/python benchmarks/mlc_fidelity.py
	$(BIN)/python benchmarks/mlc_conversion.py
	$(BIN)/python benchmarks/mlc_speed.py
	$(BIN)/python benchmarks/history_speed.py
	$(BIN)/python benchmarks/history_power.py
	$(BIN)/python benchmarks/throttling_power.py
	$(BIN)/python benchmarks/gate_for_real.py
	$(BIN)/python benchmarks/gate_power.py

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'edgebench needs Python 3.11 or newer; name one: make demo PYTHON=python3.12' >&2; exit 1; }
	@command -v c++ >/dev/null || \
	  { echo 'llama.cpp is compiled at install and needs a C++ compiler (Debian: apt install g++)' >&2; exit 1; }
	@echo 'Installing. Where pip has no llama.cpp from before, it compiles one: 4 to 15 minutes.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	CMAKE_ARGS='$(LLAMA_ARGS)' $(BIN)/python -m pip install --quiet --editable '.[all]'
	@$(BIN)/python -c '$(HAS_AMX)' || CMAKE_ARGS='$(LLAMA_ARGS)' $(BIN)/python -m pip install \
	  --quiet --no-cache-dir --no-deps --force-reinstall \
	  "llama-cpp-python==$$($(BIN)/python -c 'import llama_cpp; print(llama_cpp.__version__)')"
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group dev --group oracle
	@touch $@

clean:
	rm -rf $(VENV) build dist results
