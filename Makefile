# xwarp: MPI ranks and RDMA verbs on ordinary Ethernet. `make` lists the targets.

GO ?= go
GOLANGCI_LINT_VERSION = v2.15.0
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
# Runs go test, and says how far it is and what was left out.
GOTEST = $(GO) run ./internal/test/gotest

# Processors since about 2015 have AVX2, MOVBE and the like: a tenth of our part
# of a small message's latency. GOAMD64=v1 builds for all.
ifneq ($(shell grep -cwm1 avx2 /proc/cpuinfo 2>/dev/null),0)
export GOAMD64 ?= v3
endif

BIN ?= bin
PREFIX ?= /usr/local

# What --version says comes from git, by way of go build: unless git refuses, as it
# does root in somebody else's folder, or there is none, as in an archive. There,
# make VERSION=v1.2.3 says it; and go build does not know git's worktrees.
STAMP_FLAGS = -buildvcs=$(if $(shell git rev-parse HEAD 2>/dev/null),auto,false)
STAMP_LD = $(LDFLAGS)$(if $(VERSION), -X github.com/xwarp/xwarp/cmd/internal/cli.release=$(VERSION))
STAMP = $(STAMP_FLAGS) -ldflags '$(STAMP_LD)'
ifneq ($(wildcard .git),)
ifeq ($(wildcard .git/HEAD),)
VERSION ?= $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null)
endif
endif

.DEFAULT_GOAL := help
.PHONY: help modules build demo test test-short test-nics bench check check-long fuzz lint generate profile clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Quick when they are there, and in words when they are not.
modules:
	@GOPROXY=off $(GO) list -deps -test ./... >/dev/null 2>&1 || { \
		echo "fetching the Go modules that go.mod names, once: tens of megabytes"; $(GO) mod download; }

build: modules ## build the commands and examples into bin/
	@mkdir -p $(BIN)
	@echo "building into $(BIN)/: what Go has not compiled before takes minutes, the rest seconds"
	CGO_ENABLED=0 $(GO) build $(STAMP) -pgo=cmd/xperf/default.pgo -o $(BIN)/ ./cmd/... ./examples/...

# The libraries for programs in C, one for each binary interface, below ABI_DIR. They are made
# of abi/functions.txt, and need a C compiler: nothing else here does.
.PHONY: abi
ABI_DIR ?= .
ABI_SCRIPTS = xmpicc xmpicxx xmpifort
# --wrap: see __wrap_pthread_create in abi/parts/library.c.txt.
ABI_LINK = -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,--wrap=pthread_create -Wl,--version-script=$(CURDIR)/bin/_abi/exports.map
# From Go 1.27 on the way from C to Go has two locked instructions less, which wait until all is written that was stored
# before: a call takes 47 ns and not 58. So an older Go fetches that one for the libraries, as it does modules.
ABI_TOOLCHAIN = go1.27.4
ABI_GO = $(eval ABI_GO := $(shell { $(GO) env GOVERSION; echo $(ABI_TOOLCHAIN); } | sort -VC && { \
	GOTOOLCHAIN=$(ABI_TOOLCHAIN) $(GO) version >/dev/null && echo GOTOOLCHAIN=$(ABI_TOOLCHAIN) || \
	echo "without $(ABI_TOOLCHAIN), calls from C will take longer" >&2; }))$(ABI_GO)
ABI_BUILD = $(ABI_GO) CGO_ENABLED=1 $(GO) build -buildmode=c-shared $(STAMP_FLAGS) -pgo=cmd/xperf/default.pgo
abi: modules ## build the libraries for programs in C and Fortran (docs/ABI.md): lib/, include/ and bin/xmpicc, xmpicxx, xmpifort
	@mkdir -p $(ABI_DIR)/bin $(ABI_DIR)/lib $(ABI_DIR)/include/mpi $(ABI_DIR)/include/mpich
	$(GO) run ./abi/gen
	$(ABI_BUILD) -o $(ABI_DIR)/lib/libmpi_abi.so.1 -ldflags '$(STAMP_LD) -extldflags "-Wl,-soname,libmpi_abi.so.1 $(ABI_LINK)"' ./bin/_abi/mpi
	$(ABI_BUILD) -o $(ABI_DIR)/lib/libmpich.so.12 -tags mpich -ldflags '$(STAMP_LD) -extldflags "-Wl,-soname,libmpich.so.12 $(ABI_LINK)"' ./bin/_abi/mpich
	@rm -f $(ABI_DIR)/lib/*.h
	@ln -sf libmpi_abi.so.1 $(ABI_DIR)/lib/libmpi_abi.so && ln -sf libmpi_abi.so.1 $(ABI_DIR)/lib/libmpi_abi.so.0
	@ln -sf libmpich.so.12 $(ABI_DIR)/lib/libmpi.so.12 && ln -sf libmpich.so.12 $(ABI_DIR)/lib/libmpich.so
	install -m 644 bin/_abi/mpi/mpi.h $(ABI_DIR)/include/mpi/mpi.h
	install -m 644 bin/_abi/mpich/mpi.h $(ABI_DIR)/include/mpich/mpi.h
	for s in $(ABI_SCRIPTS); do install abi/xmpicc $(ABI_DIR)/bin/$$s || exit; done

.PHONY: install uninstall deb
COMMANDS = $(patsubst cmd/%/main.go,%,$(wildcard cmd/*/main.go))
SHARE = $(DESTDIR)$(PREFIX)/share
MAN = $(SHARE)/man/man1
COMPLETION = $(SHARE)/bash-completion/completions

# With sudo there often is no Go: what make build has built is installed then.
install: $(if $(shell command -v $(firstword $(GO))),build) ## install commands, docs and what make abi has built in PREFIX=/usr/local (and DESTDIR)
	@[ -x $(BIN)/xrun ] || { echo "make install: nothing is built and there is no Go: run make build first, as a user who has it" >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/bin $(MAN) $(COMPLETION) $(SHARE)/doc/xwarp/docs/architecture $(SHARE)/doc/xwarp/docs/protocol $(SHARE)/xwarp/wireshark
	install $(COMMANDS:%=$(BIN)/%) $(DESTDIR)$(PREFIX)/bin
	umask 022 && for c in $(COMMANDS); do \
		$(BIN)/$$c --man >$(MAN)/$$c.1 && $(BIN)/$$c --completion >$(COMPLETION)/$$c || exit; done
	install -m 644 README.md CHANGELOG.md LICENSE $(SHARE)/doc/xwarp
	for d in . architecture protocol; do install -m 644 docs/$$d/*.md $(SHARE)/doc/xwarp/docs/$$d || exit; done
	install -m 644 docs/wireshark/* $(SHARE)/xwarp/wireshark
	$(if $(wildcard $(ABI_DIR)/lib/libmpi_abi.so.1),$(INSTALL_ABI))

# What make abi has built, if it has: links stay links.
LIB = $(DESTDIR)$(PREFIX)/lib
INCLUDE = $(DESTDIR)$(PREFIX)/include
ABI_LIBS = libmpi_abi.so.1 libmpi_abi.so.0 libmpi_abi.so libmpich.so.12 libmpich.so libmpi.so.12
ABI_PC = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@ABI@|$(1)|' -e 's|@NAME@|xwarp-$(1)|' -e 's|@WHOSE@|$(2)|' -e 's|@LIBRARY@|$(3)|' abi/parts/xwarp.pc.txt >$(LIB)/pkgconfig/xwarp-$(1).pc
define INSTALL_ABI
install -d $(LIB)/pkgconfig $(INCLUDE)/mpi $(INCLUDE)/mpich
	cp -dp $(ABI_LIBS:%=$(ABI_DIR)/lib/%) $(LIB)
	for a in mpi mpich; do install -m 644 $(ABI_DIR)/include/$$a/mpi.h $(INCLUDE)/$$a/mpi.h || exit; done
	install $(ABI_SCRIPTS:%=$(ABI_DIR)/bin/%) $(DESTDIR)$(PREFIX)/bin
	umask 022 && $(call ABI_PC,mpi,MPI 5.0,mpi_abi) && $(call ABI_PC,mpich,MPICH,mpich)
endef

uninstall: ## remove what make install has installed there
	rm -f $(COMMANDS:%=$(DESTDIR)$(PREFIX)/bin/%) $(COMMANDS:%=$(MAN)/%.1) $(COMMANDS:%=$(COMPLETION)/%)
	rm -rf $(SHARE)/doc/xwarp $(SHARE)/xwarp
	rm -f $(ABI_SCRIPTS:%=$(DESTDIR)$(PREFIX)/bin/%) $(ABI_LIBS:%=$(LIB)/%) $(LIB)/pkgconfig/xwarp-mpi.pc $(LIB)/pkgconfig/xwarp-mpich.pc $(INCLUDE)/mpi/mpi.h $(INCLUDE)/mpich/mpi.h
	@rmdir $(INCLUDE)/mpi $(INCLUDE)/mpich 2>/dev/null || true

# For every amd64, unless make deb GOAMD64=v3 says otherwise.
deb: export GOAMD64 = v1
deb: ## build a Debian package, bin/xwarp_VERSION_ARCHITECTURE.deb
	@MAKE='$(MAKE)' GO='$(GO)' packaging/deb $(BIN)

demo: build ## two hosts over AF_XDP on this machine: a table of transports, then an MPI program (under 2 minutes)
	@./examples/demo.sh

test: modules ## run all tests; as root also those that need AF_XDP and network namespaces (TIMEOUT=60m ends a package that hangs)
	@[ "$$(id -u)" = 0 ] || echo "make test: not root, so what needs AF_XDP or network namespaces is left out: sudo make test"
	$(GOTEST) -timeout $(or $(TIMEOUT),60m) $(LONGEST_FIRST) ./...

# So that none of them runs alone in the end.
LONGEST_FIRST = ./mpi ./internal/test/conform ./cmd/xrun

# What takes long: packages that start whole jobs, use devices or try every case;
# and, by their names, such tests of the others.
LONG_PACKAGES = /(abi|bench|bpf|xdp|cmd/(xperf|xrun|xping)|examples/(cg|hello|ulfm)|internal/(test/(conform|check)|job/(launch|boot/pmi)|proto/arq|carrier/(netstack|capture))|verbs/device|mpi/internal/(coll|reliable|match|p2p|dtype))$$
LONG_TESTS = (?i:oracle|random|storm|soak|scale|incast|tshark|byte|process|ulfm|partition|lost|givesback|every|many|whole|veth|inter_|grequest|allocs|Reductions_in|free|suite)

test-short: modules ## run the tests that take no time (under a minute once they are built)
	@echo "make test-short: leaves out what starts jobs, uses devices or tries every case: make test"
	$(GOTEST) -short -skip '$(LONG_TESTS)' $$($(GO) list -f '{{.Dir}}' ./... | grep -vE '$(LONG_PACKAGES)' | sed "s|^$$PWD|.|")

test-nics: modules ## run jobs on the drivers of real network cards, in guests of qemu; as root (hours; .ci/nics/run --help)
	.ci/nics/run

bench: build ## measure every test of xperf over a veth pair, the table of transports, and the Go benchmarks
	@for test in $(foreach layer,raw send mpi,$(layer)_lat $(layer)_bw $(layer)_rate) \
		write_lat write_bw read_lat read_bw atomic_lat write_record_lat write_record_bw \
		send_bibw write_bibw read_bibw mpi_bibw; do \
		./bin/xperf $$test --testbed || exit; done
	./bin/xperf compare verbs --testbed
	$(GO) test -run '^$$' -bench . ./...

check: build ## play SEEDS=10000 seeds of random verbs traffic over a bad network, judged by a model
	./bin/xcheck --seeds $(or $(SEEDS),10000)

check-long: ## run all tests, and the demonstration, on a fresh Debian with only Go, git and make: as root and as a user (an hour)
	.ci/clean-root 'make demo' 'XWARP_LONG=1 make test' 'user:make demo' 'user:make test'

# One binary for all fuzz tests of a package: to link it takes longer than many of them.
# Inputs that reach new code are made smaller in 1000 tries at most. By default that goes
# on for a minute each, which a packet of 9000 bytes takes in full.
fuzz: ## run every fuzz test for FUZZ_TIME=1m (or 50000x inputs), or those in FUZZ_IN=folder
	@bins=$$(mktemp -d) && trap 'rm -rf "$$bins"' EXIT && cache=$$($(GO) env GOCACHE)/fuzz && \
	grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' $(or $(FUZZ_IN),.) | sed 's/func //' | sort | { \
	failed=0; while IFS=: read -r file name; do \
		dir=$$(dirname "$$file"); bin=$$bins/$$dir/fuzz.test; \
		echo "-- $$dir $$name"; \
		[ -x "$$bin" ] || $(GO) test -c -fuzz . -o "$$bin" "./$$dir" || { failed=1; continue; }; \
		(cd "$$dir" && "$$bin" -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(or $(FUZZ_TIME),1m) \
			-test.fuzzminimizetime 1000x -test.fuzzcachedir "$$cache/$$($(GO) list .)") || failed=1; \
	done; exit $$failed; }

# golangci-lint runs the analyzers of go vet, and more.
lint: ## check the style: gofmt, go vet, golangci-lint
	@dirs=$$($(GO) list -f '{{.Dir}}' ./...) && gofmt -d $$dirs && test -z "$$(gofmt -l $$dirs)"
	@[ -d "$$($(GO) env GOMODCACHE)/github.com/golangci/golangci-lint/v2@$(GOLANGCI_LINT_VERSION)" ] || \
		echo "fetching and building golangci-lint $(GOLANGCI_LINT_VERSION), once: some minutes, of which nothing is seen"
	$(GOLANGCI_LINT) run

generate: ## make the generated files anew: BPF objects (needs clang-14, libbpf-dev), the matrix of examples/cg, constants of abi, docs/CONFIG.md and ABI.md
	$(GO) generate ./...

profile: ## measure anew which code a message runs through, for the compiler (cmd/xperf/default.pgo)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(GO) test ./verbs -o "$$dir/verbs.test" -run '^$$' -bench 'RD_pingPong8|RD_rate8' -benchtime 4s -cpuprofile "$$dir/verbs" && \
	$(GO) test ./mpi -o "$$dir/mpi.test" -run '^$$' -bench 'Pipe_pingPong8|Pipe_rate8' -benchtime 4s -cpuprofile "$$dir/mpi" && \
	$(GO) tool pprof -proto "$$dir/verbs" "$$dir/mpi" > cmd/xperf/default.pgo

clean: ## remove what was built, and what killed runs left behind on this machine
	@if [ -x bin/xinfo ]; then ./bin/xinfo --clean; fi
	rm -rf bin lib include
