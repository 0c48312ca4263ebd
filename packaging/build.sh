#!/usr/bin/env bash
# usage: packaging/build.sh RELEASE OUT   builds a stripped binary that says it is RELEASE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=1
exec go build -buildvcs=false -tags=duckdb_arrow -trimpath \
  -ldflags "-s -w -X github.com/kappactl/kappactl/internal/cli.release=$1" -o "$2" ./cmd/kappactl
