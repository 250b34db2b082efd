# Thin: each line calls a tool that can be called alone.
.PHONY: llm-models llm-equality bench-llm python-docs demo test check build bench cross trust lint fuzz fuzz-graphs docs setup setup-all asan tsan python python-zoo python-jit-bench python-slow python-asan wheel conformance clean
JOBS ?= $(shell nproc)

# Installs what is missing, builds, and runs the main job on the bundled model.
demo: build
	tools/demo

# Everything that CI runs.
test: setup-all lint check asan tsan fuzz python cross
	@echo "all tests passed"

# The C tests on the release build: quick.
check: build
	cmake --build --preset release --target ait_tests -j $(JOBS)
	ctest --test-dir build/release --output-on-failure -j $(JOBS)

build: setup
	cmake --preset release -DCMAKE_INSTALL_PREFIX=/usr/local > /dev/null
	cmake --build --preset release -j $(JOBS)

# AddressSanitizer and UBSan over every C test.
asan: setup
	cmake --preset asan > /dev/null
	cmake --build --preset asan --target ait_tests ait_cli -j $(JOBS)
	ctest --test-dir build/asan --output-on-failure -j $(JOBS) -LE slow

# ThreadSanitizer over what uses threads.
tsan: setup
	cmake --preset tsan > /dev/null
	tools/tsan_tests build/tsan $(JOBS)

# Each libFuzzer target for FUZZ_SECONDS.
FUZZ_SECONDS ?= 5
fuzz: setup-all
	cmake --preset fuzz -DAIT_FUZZ_SECONDS=$(FUZZ_SECONDS) > /dev/null
	cmake --build --preset fuzz --target ait_fuzzers -j $(JOBS)
	ctest --test-dir build/fuzz --output-on-failure -j $(JOBS)

# Random graphs through every pass and backend against the oracle, for SECONDS from seed SEED (a night: SECONDS=3600). Failures are shrunk to
# build/fuzz-graphs/*.txt.
SECONDS ?= 60
SEED ?= 1
fuzz-graphs: build
	cmake --build --preset release --target ait_graph_fuzz -j $(JOBS)
	mkdir -p build/fuzz-graphs
	build/release/bin/ait_graph_fuzz --seconds $(SECONDS) --seed $(SEED) --failures 10 --out build/fuzz-graphs

# PyTorch's operator database and ONNX's node tests: percentages, and docs/conformance.md.
conformance: setup-all build
	.venv/bin/python tests/conformance/run.py build/release/bin/ait

# Front-end and differential tests against PyTorch.
python: setup-all build
	cmake --build --preset release --target ait_python ait_rt_python ait_rt_wheel -j $(JOBS)
	.venv/bin/python -m pytest -q tests/python --ignore tests/python/test_python_backends.py
	.venv/bin/python -m pytest -q tests/python/test_python_backends.py # its backends, bad ones among them, would join all contests of the process

# What `make python` leaves out for its time: the other scripts under the JIT, spawned workers, backends that compile by Inductor.
python-slow: setup-all build
	cmake --build --preset release --target ait_python -j $(JOBS)
	AIT_SLOW_TESTS=1 .venv/bin/python -m pytest -q tests/python/test_jit.py tests/python/test_jit_habits.py -k "scripts or ways_to_start"
	AIT_SLOW_TESTS=1 .venv/bin/python -m pytest -q tests/python/test_python_backends.py -k torchs_own

# Every page for users, executed as it stands; the tests run two of them.
python-docs: setup-all build
	cmake --build --preset release --target ait_python -j $(JOBS)
	AIT_GUIDES=all .venv/bin/python -m pytest -q tests/python/test_guides.py

# Every kind of language model that the sweep knows: exported by transformers, deployed, compared; writes docs/models.md.
llm-models: setup-all build
	.venv/bin/python tests/llm/make.py sweep build/release/bin/ait build/llm -o docs/models.md

# Answers, logits, requests at random and memory of whole language models against transformers: MODELS="FOLDER FOLDER=DRAFT-FOLDER ..." (Hugging Face folders),
# ZOO: a folder with make.py and zoo.py.
REQUESTS ?= 500
llm-equality: setup-all build
	cmake --build --preset release --target ait_llm_check -j $(JOBS)
	.venv/bin/python tests/llm/equality.py build/release/bin/ait build/release/tests/ait_llm_check build/llm-equality $(MODELS:%=--model %) $(if $(ZOO),--zoo $(ZOO)) \
	  --requests $(REQUESTS)

# The tests of the extension module under AddressSanitizer and UBSan.
python-asan: setup-all
	cmake --preset asan > /dev/null
	cmake --build --preset asan --target ait_python -j $(JOBS)
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	  AIT_PYTHON_PACKAGE=$(CURDIR)/build/asan/python .venv/bin/python -X dev -m pytest -q tests/python/test_package.py tests/python/test_embed.py

# Wheels of the packages ait and ait-rt, with all that they need inside, checked: build/wheels.
wheel: setup-all
	.venv/bin/python tools/wheel build/wheels

# A zoo of models through Python only: tune, save, load without torch, run, compare. ZOO: a folder with make.py and zoo.py (tests/python/roundtrip.py).
python-zoo: setup-all build
	cmake --build --preset release --target ait_python -j $(JOBS)
	.venv/bin/python tests/python/roundtrip.py --zoo $(ZOO)

# Unchanged scripts with the JIT: answers, what the second run's start costs, steady state. In quiet: chrt -f 10 make python-jit-bench.
python-jit-bench: setup-all build
	cmake --build --preset release --target ait_python -j $(JOBS)
	.venv/bin/python tests/python/jit_bench.py

# Speeds of every kernel, and against ONNX Runtime where the Python environment has it.
bench: build
	cmake --build --preset release --target ait_benches -j $(JOBS)
	tools/bench

# A backend against itself, 100 times: at most 5 contests may declare a winner. Then 100 kills at random times, and two
# runs that must choose the same plan or call it a tie.
trust: build
	cmake --build --preset release --target tune_aa_test test_plugin_backend -j $(JOBS)
	build/release/tests/tune_aa_test --real 100
	KILLS=100 TWICE=1 tests/cli/trust_test.sh $(CURDIR)/build/release/bin/ait $(CURDIR)/tests/data $(CURDIR)/build/release/tests/plugin_backend.so

# libait-rt for 64-bit ARM, and files tuned here run with it under qemu. Where Debian's packages for that cannot be had it says so and is skipped.
cross: build
	tools/cross $(JOBS)

# Tunes every model of ZOO (NAME.pt2 with NAME.in0.npz): speed-ups over eager and over PyTorch eager, and nothing slower than a single backend.
BUDGET ?= 120s
bench-tune: build
	PYTHON=.venv/bin/python; [ -x $$PYTHON ] || PYTHON=python3; $$PYTHON tools/bench_tune build/release/bin/ait $(ZOO) --budget $(BUDGET)

# Language models against llama.cpp: decoding, prefill, batches, start, memory, in three precisions (tools/bench_llm; docs/benchmarks.md).
bench-llm: setup-all build
	cmake --build --preset release --target ait_python llm_bench -j $(JOBS)
	.venv/bin/python -m pip install -q --disable-pip-version-check -r bench/llm/requirements.txt
	.venv/bin/python tools/bench_llm --json build/bench-llm/result.json

lint:
	tools/check_rooms
	tools/check_text
	tools/check_format

# Pages that are made from the program: after a change of options.inc, ops.inc or a quoted file.
docs: build
	tools/gen_docs build/release/bin/ait

setup:
	tools/setup core

setup-all:
	tools/setup all

clean:
	rm -rf build
