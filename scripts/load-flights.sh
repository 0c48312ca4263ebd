#!/usr/bin/env bash
# Fetches the flights and loads them into a topic with 4 partitions:
#
#   scripts/load-flights.sh [OPTION]...     options of kappactl dev load, such as --limit 300000 or --config FILE
#
# KAPPACTL names the program (default: bin/kappactl of this folder, else the one on PATH).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${KAPPACTL:-}
if [ -z "$program" ]; then
  program=$here/../bin/kappactl
  [ -x "$program" ] || program=$(command -v kappactl) || {
    echo "load-flights.sh: kappactl is missing: run make build" >&2
    exit 1
  }
fi
file=$("$here/fetch-flights.sh")
exec "$program" dev load "$file" --topic flights --partitions 4 "$@"
