# kappactl: make demo shows the product, make test tests it, make check is what CI runs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

# The one place where the build tag of the SQL engine is set for make; .golangci.yml has it for the linters. With -trimpath what was
# compiled in one clone is found by another, and by the builds of the binary that tests make.
export GOFLAGS := $(strip $(GOFLAGS) -tags=duckdb_arrow -trimpath)
export CGO_ENABLED := 1

TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kappactl/bin
GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION := v0.12.0
RELEASE := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

.PHONY: build demo test check pictures bench bench-parts soak fmt lint docs need-go need-postgres

## build: bin/kappactl
build: need-go
	go build -ldflags "-X github.com/kappactl/kappactl/internal/cli.release=$(RELEASE)" -o bin/kappactl ./cmd/kappactl

## demo: the main job end to end on the embedded stack
demo: build need-postgres
	bin/kappactl demo

# Packages are tested two at a time, in this order: the long ones begin first, so that none is left alone at the end. The race detector is
# for what runs in the processes of tests: those of e2e start the binary and wait, all but one, which hosts agents.
LONG := ./reprocess ./speedlayer ./internal/query ./internal/kafka ./internal/cli
E2E := github.com/kappactl/kappactl/internal/e2e
# HOSTED is that one. It runs only in the command with -race.
HOSTED := TestTheViewEquals
GO_TEST := go test -vet=off -ldflags=-w -timeout 30m

# Without debug information (-w) the tests of a package with the SQL engine link in half the time. lint vets.
## test: all tests, with the race detector, against one PostgreSQL and one Kafka broker started for the run
test: need-go need-postgres
	go run ./internal/testservers $(GO_TEST) -skip $(HOSTED) ./internal/e2e -- $(GO_TEST) -race -run $(HOSTED) ./internal/e2e \
	  -- $(GO_TEST) -race $(LONG) $$(go list ./... | grep -vx $(E2E))

## check: format, linters, documents in step with the code, all tests
check: need-go fmt lint test

## soak: the long tests at full size
soak: need-go need-postgres
	KAPPACTL_SOAK=1 go run ./internal/testservers go test -timeout 120m -v -run 'TestSoak|TestFlights|TestKill|TestAgentsKilled|TestCut|TestPostgreSQLStopped|TestAPartition|TestTheViewEquals|TestPlanSaysWhatDeploy|TestPaused|TestTwoAgents|TestProducer' ./internal/e2e
	KAPPACTL_SOAK=1 go run ./internal/testservers go test -timeout 60m -run 'Rows|Key|Tombstone|Newer|Appended' ./speedlayer

## pictures: docs/images, taken of the real program
pictures: build need-postgres
	go run ./scripts/pictures

## bench: how long a replay takes, beside what the machine could do; flags in BENCH (docs/performance.md)
bench: need-go need-postgres
	go run ./bench $(BENCH)

## bench-parts: benchmarks of the parts
bench-parts: need-go need-postgres
	go run ./internal/testservers go test -run '^$$' -bench . -benchmem ./internal/format ./internal/query ./speedlayer

fmt: $(TOOLS)/gofumpt-$(GOFUMPT_VERSION)
	@unformatted=$$($< -l $$(git ls-files '*.go')); \
	  test -z "$$unformatted" || { echo "not formatted (run gofumpt -w):"; echo "$$unformatted"; exit 1; }

lint: $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
	$< run ./...

## docs: write the generated documents again (a test compares them)
docs: need-go
	go test ./internal/cli ./reprocess ./internal/job ./internal/reason ./internal/httpapi -run 'InSync' -update
	go test ./internal/e2e -run InSync -update

$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION):
	GOFLAGS= GOBIN=$(TOOLS)/install go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/install/golangci-lint $@

$(TOOLS)/gofumpt-$(GOFUMPT_VERSION):
	GOFLAGS= GOBIN=$(TOOLS)/install go install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
	mv $(TOOLS)/install/gofumpt $@

need-go:
	@command -v go >/dev/null || { echo "Go is missing: install Go 1.26 or newer (https://go.dev/dl)"; exit 1; }
	@command -v "$$(go env CC)" >/dev/null || { echo "a C compiler is missing, and the SQL engine (DuckDB) is linked through cgo: install gcc and g++ (Debian: apt-get install build-essential) or clang"; exit 1; }

need-postgres:
	@scripts/install-postgres.sh
