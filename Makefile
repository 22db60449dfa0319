# SPDX-License-Identifier: MIT
# A thin face of CMake: every target here is one or two commands that could be typed by hand (see HACKING.md).

JOBS ?= $(shell nproc)
BUILD ?= build

.PHONY: all deps demo test check check-long check-kernels bench bench-peers install deb tarball clean format asan relocate-fuzz expression-fuzz torture
.DEFAULT_GOAL := all

all: ## build the release in build/
	@sh scripts/install-packages.sh build
	cmake --preset release -DBUILD_TESTING=OFF >/dev/null
	cmake --build $(BUILD) -j $(JOBS)

deps: ## install every Debian package that building and testing need
	@sh scripts/install-packages.sh all

demo: ## probe a live server and look at its events
	@sh scripts/install-packages.sh all
	@sh demo/demo.sh

test: ## the unit tests, without sanitizers
	@sh scripts/install-packages.sh all
	@sh scripts/build-quietly.sh release -DBUILD_TESTING=ON
	ctest --preset release -L '^unit$$' --timeout 300

check-long: ## what check leaves out for its length: long forms, every compiler with tests, the packages in bare systems
	@sh scripts/install-packages.sh all
	@sh scripts/install-packages.sh packages
	@sh scripts/check-long.sh

check: ## everything that CI runs
	@sh scripts/install-packages.sh all
	@sh scripts/check.sh

check-kernels: ## boot Debian's kernels and other processors in an emulator, with a smoke suite in each; KERNELS="6.1 Haswell here" for some of them
	@sh scripts/install-packages.sh kernels
	cmake --preset release -DBUILD_TESTING=ON >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
	@sh scripts/check-kernels.sh -b $(BUILD) $(KERNELS)

bench: deps ## the figures of docs/performance.md
	@sh scripts/bench.sh

bench-peers: ## the same questions to bpftrace, perf, gdb and others: docs/peers.md and its charts; ROUNDS=1 is the short form (needs root)
	@sh scripts/install-packages.sh peers
	cmake --preset release -DBUILD_TESTING=OFF >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target dynprobe peers_programs
	python3 -B bench/run_peers.py --build $(BUILD) --rounds $(or $(ROUNDS),5)

relocate-fuzz: deps ## moved instructions against the original ones: SECONDS (default 600) of random encodings, after all forms of FILES
	cmake --preset release -DBUILD_TESTING=ON >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target relocate_diff
	$(BUILD)/tests/relocate/relocate_diff --states 8 --rounds 10 --seconds $(or $(SECONDS),600) $(FILES)

expression-fuzz: deps ## random expressions of the language against gcc's answers, for SECONDS (default 600)
	cmake --preset release -DBUILD_TESTING=ON >/dev/null
	cmake --build $(BUILD) -j $(JOBS) --target expression_diff
	python3 -B tests/expressions/diff.py $(BUILD)/tests/expressions/expression_diff --seconds $(or $(SECONDS),600)

torture: deps ## real programs under probes that come and go, for SECONDS (default 3600) in all; PROGRAMS=... for some of them
	@sh scripts/install-packages.sh torture
	cmake --preset release -DBUILD_TESTING=ON >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
	TARGETS=$(BUILD)/tests/targets python3 -B tests/torture/run.py --torture $(BUILD)/tests/torture/torture --seconds $(or $(SECONDS),3600) \
		--keep $(BUILD)/tests/failures --markdown $(BUILD)/tests/torture.md $(PROGRAMS)

asan: deps ## the tool under ASan and UBSan, with its tests
	cmake --preset asan >/dev/null
	cmake --build build-asan -j $(JOBS)
	ctest --preset asan

install: all ## install below PREFIX (default /usr/local) and DESTDIR
	DESTDIR='$(DESTDIR)' cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

deb: ## packages for Debian in build/packages: dynprobe, dynprobe-dev
	@sh scripts/install-packages.sh packages
	cmake --preset release >/dev/null
	cmake --build $(BUILD) -j $(JOBS)
	cpack --config $(BUILD)/CPackConfig.cmake -G DEB -B $(BUILD)/packages
	lintian --allow-root --fail-on error,warning $(BUILD)/packages/*.deb

tarball: ## an archive for any distribution with glibc 2.31 in build/packages
	@sh scripts/install-packages.sh packages
	@sh scripts/make-tarball.sh

format: ## clang-format over every C file
	git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove every build directory
	rm -rf build build-debug build-o3 build-asan build-clang build-portable build-fuzz

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile
.PHONY: help
