# SPDX-License-Identifier: Apache-2.0
# The commands of this repository; the work is done by meson, go and the scripts in tools/.
PREFIX ?= /usr/local
DESTDIR ?=
KEEP ?=
PROFILE ?= all
HUGE_MB ?= 1024
FLEET_TESTS = $(wildcard $(addprefix tests/system/test_,fabric.py bird.py gobgp.py evpn*.py))
BENCH_MB ?= 2048
BENCH_OUT ?= bench-results
BENCH ?=
ONLY ?=
REPEAT ?= 3
export PREFIX DESTDIR

.DEFAULT_GOAL := help
.PHONY: help deps deps-% build demo test lint format soak fleet fuzz fuzz-coverage api api-check graph bpf bpf-check bench bench-micro measure install uninstall deb clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

deps: ## install what is missing from the distribution (PROFILE=build|demo|test|bench|lint|deb|all; needs root when something is)
	@tools/deps.sh $(PROFILE)

deps-%:
	@tools/deps.sh $*

root-%:
	@test "$$(id -u)" = 0 || { echo "network namespaces and hugepages need root. Run: sudo make $*" >&2; exit 2; }

build: deps-build ## build everything into build/ and bin/
	@tools/build.sh

demo: root-demo deps-demo ## two hosts, four overlays, real traffic (needs root; KEEP=1 leaves the lab running)
	@tools/build.sh
	@tools/with-hugepages.sh $(HUGE_MB) -- bin/corelane lab demo $(if $(KEEP),--keep)

test: root-test deps-test ## run all tests and count them (needs root; PARTS="unit packet" runs only those, LONG=1 makes all random rounds, SEED=7 repeats one, FUZZ_SECONDS=60 fuzzes longer)
	@tools/build.sh
	@tools/with-hugepages.sh $(HUGE_MB) -- tools/test.sh $(PARTS)

lint: deps-lint ## run the linters
	@tools/lint.sh

format: deps-lint ## reformat the C and Go sources
	@git ls-files '*.c' '*.h' | xargs clang-format -i
	@git ls-files '*.go' | xargs "$$(tools/go.sh env GOROOT)/bin/gofmt" -w

soak: root-soak deps-test ## ten minutes of traffic while everything changes (needs root; SOAK_SECONDS=60 for less)
	@tools/build.sh
	@tools/with-hugepages.sh $(HUGE_MB) -- tests/system/soak.sh $${SOAK_SECONDS:-600}

fleet: root-fleet deps-test ## the labs of a fleet over FRR, BIRD and GoBGP, with everything killed in turn (needs root)
	@tools/build.sh
	@CORELANE_FLEET=1 tools/with-hugepages.sh $(HUGE_MB) -- /usr/bin/python3 -m pytest -q -p no:cacheprovider $(FLEET_TESTS)

fuzz: deps-test ## fuzz each parser for FUZZ_SECONDS (default 60)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} tools/test.sh fuzz

fuzz-coverage: deps-test ## which lines of each parser the fuzz targets reach with their corpora (some unit tests that it runs need root)
	@tools/coverage.py --record

bench: root-bench deps-bench ## a quarter of an hour: how fast Corelane and its peers are on this machine (needs root; BENCH="--quick" for less)
	@tools/build.sh
	@tools/with-hugepages.sh $(BENCH_MB) -- bin/corelane bench peers --out $(BENCH_OUT) $(BENCH)
	@bin/corelane bench tcp --quick

bench-micro: deps-test ## cycles per packet of each node and inner loop, and instructions against their baseline
	@tools/build.sh
	@ninja -C build bench-programs
	@for b in build/tests/perf/*_bench; do echo "==> bench: $$b"; $$b || exit; done
	@tests/perf/instructions.sh

measure: root-measure deps-test deps-bench ## hours: measure every promise about times and rates, three times (needs root; ONLY="bench restart" for one, REPEAT=1)
	@tools/build.sh
	@ninja -C build test-programs
	@tools/with-hugepages.sh $(BENCH_MB) -- tools/measure.py --only "$(ONLY)" --repeat $(REPEAT)

api: deps-test ## regenerate the Go side of the API, and its limits as C, from api/*.proto
	@tools/api.sh

graph: root-graph deps-test ## draw docs/packet-path.svg anew from the graph of a running corelaned (needs root)
	@tools/build.sh
	@/usr/bin/python3 tests/packet/test_graph.py

bpf: deps-test ## compile the eBPF programs of corelane explain anew
	@tools/bpf.sh

bpf-check: deps-test ## is their committed object current?
	@tools/bpf.sh --check

api-check: deps-test ## is what is committed of api/*.proto current?
	@tools/api.sh --check

install: ## install programs, man pages, completion and systemd units (PREFIX, DESTDIR)
	@test -x bin/corelaned -a -x build/dataplane/release/corelaned || { echo "nothing is built; run 'make build' first" >&2; exit 2; }
	@tools/install.sh install

uninstall: ## remove what install put there (PREFIX, DESTDIR)
	@tools/install.sh uninstall

deb: deps-deb ## pack a Debian package into dist/
	@tools/build.sh
	@tools/deb.sh

clean: ## remove what was built
	rm -rf build build-asan build-coverage build-tsan bin dist
