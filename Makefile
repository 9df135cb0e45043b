# Everything a developer does, by name. "make help" lists the targets.

MODULE  := github.com/fdinit/fdinit
COMMIT  := $(shell git rev-parse --short=7 HEAD 2>/dev/null)
GO      := go
GOARCH  ?= $(shell $(GO) env GOARCH)
TOOL    := $(GO) tool -modfile=$(CURDIR)/tools/go.mod
FUZZTIME ?= 200000x
TESTFLAGS ?=
LABFLAGS ?=
BENCHFLAGS ?=

# A bound on hangs only: go test's own 10 minutes are too few for a machine that does much else.
TIMEOUT := -timeout 40m
# -count=1: Go's test cache does not see that the binary has changed.
TEST    := $(GO) test -count=1 $(TIMEOUT)

# The same flags give the same bytes on any machine. GOAMD64=v1 is what the freestanding
# rule test has checked.
BUILD := CGO_ENABLED=0 GOOS=linux GOARCH=$(GOARCH) GOAMD64=v1 $(GO) build -trimpath -buildvcs=false \
	-ldflags='-s -w -buildid= -E=$(MODULE)/internal/freestanding.Entry -X main.commit=$(COMMIT)'

# Modules of tests and tools, beside the binary's own.
MODULES := $(patsubst %/go.mod,%,$(filter-out tools/go.mod,$(wildcard */go.mod */*/go.mod)))

.PHONY: help build demo test unit e2e compat engines lab emulated reproducible fuzz hostile chaos bench bench-sweep bench-jvm bench-tests lab-tests bench-check format lint tidy clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## build bin/fdinit, static, in one file, with its own entry point
	@mkdir -p bin
	$(BUILD) -o bin/fdinit ./cmd/fdinit

demo: build ## show the main job: a leaky, oversized environment before and after
	@sh test/demo/demo.sh bin/fdinit

test: unit e2e ## run every test that needs only Go and Linux

unit: ## test the packages, and the freestanding rule on the linked binary
	$(GO) vet ./...
	$(GO) test $(TIMEOUT) $(TESTFLAGS) ./...

e2e: build ## test the binary as a real PID 1
	cd test/e2e && FDINIT_BINARY=$(CURDIR)/bin/fdinit $(TEST) $(TESTFLAGS) ./...

compat: build ## compare with tini, dumb-init and catatonit (apt: these three)
	cd test/compat && FDINIT_BINARY=$(CURDIR)/bin/fdinit $(TEST) $(TESTFLAGS) ./...

engines: build ## run under docker, podman and runc (apt: see test/engines)
	cd test/engines && FDINIT_BINARY=$(CURDIR)/bin/fdinit $(TEST) $(TESTFLAGS) ./...

lab: ## run on real kernels with real limits in QEMU (LABFLAGS=-short for the core of it)
	cd test/lab && $(GO) run . $(LABFLAGS)

emulated: ## run the arm64 binary under qemu-user (apt: qemu-user-static)
	$(MAKE) --no-print-directory build-arm64
	sh test/emulated/run.sh qemu-aarch64-static bin/fdinit-arm64

build-%:
	@mkdir -p bin
	$(subst GOARCH=$(GOARCH),GOARCH=$*,$(BUILD)) -o bin/fdinit-$* ./cmd/fdinit

reproducible: ## build twice, in two places, and compare
	@set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	cp -r cmd internal go.mod go.sum "$$work"; \
	$(BUILD) -o "$$work/here" ./cmd/fdinit; \
	(cd "$$work" && GOCACHE="$$work/cache" $(BUILD) -o "$$work/there" ./cmd/fdinit); \
	cmp "$$work/here" "$$work/there"; chmod -R u+w "$$work"; echo "reproducible: $$(sha256sum <"$$work/here")"

# Not for a time: go test fails when that ends in the middle of an execution
# (context deadline exceeded; golang.org/issue/75804).
fuzz: ## run every fuzz test for FUZZTIME executions (200000x)
	@grep -rlE '^func Fuzz' --include='*_test.go' cmd internal | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "fuzzing $$name for $(FUZZTIME)"; \
			$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "./$$(dirname "$$file")" || exit 1; \
		done; \
	done

bench: build ## measure side by side with the other inits (apt: tini dumb-init catatonit; BENCHFLAGS=-quick)
	cd bench && $(GO) run . -fdinit ../bin/fdinit $(BENCHFLAGS)

bench-sweep: ## measure what each way to close descriptors costs (BENCHFLAGS=-quick)
	cd bench && $(GO) run . -only=sweep -out ../docs/bench $(BENCHFLAGS)

bench-jvm: build ## repeat gcj's test on a JVM (apt: default-jdk-headless strace; BENCHFLAGS=-quick)
	cd bench && $(GO) run . -only=jvm -fdinit ../bin/fdinit -out ../docs/bench $(BENCHFLAGS)

hostile: build ## run in hostile conditions
	cd test/hostile && FDINIT_BINARY=$(CURDIR)/bin/fdinit $(TEST) $(TESTFLAGS) ./...

chaos: build ## twenty minutes of random forks, signals, stops and exits against a model
	cd test/hostile && FDINIT_BINARY=$(CURDIR)/bin/fdinit $(TEST) -run Chaos -v . -chaos 20m

bench-tests: ## test the benchmark itself (apt: default-jdk-headless strace)
	cd bench && $(TEST) $(TESTFLAGS) ./...

lab-tests: ## test the lab itself
	cd test/lab && $(TEST) $(TESTFLAGS) ./...

bench-check: build ## check that the ratios that the README claims still hold
	cd bench && $(GO) run . -fdinit ../bin/fdinit -check claims.json

format: ## format the code
	$(TOOL) gofumpt -w .

lint: ## look for what the compiler lets pass
	@test -z "$$($(TOOL) gofumpt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...
	$(TOOL) staticcheck ./...
	@for module in $(MODULES); do \
		echo "checking $$module"; \
		(cd $$module && $(GO) vet ./... && $(TOOL) staticcheck ./...) || exit 1; \
	done

tidy: ## make every go.mod say what is used
	$(GO) mod tidy
	@for module in $(MODULES) tools; do (cd $$module && $(GO) mod tidy) || exit 1; done

clean: ## remove what was built
	rm -rf bin
