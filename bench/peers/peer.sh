#!/usr/bin/env bash
# Runs a peer of the benchmark: fetches what its pom.xml names, compiles its Rollup.java, both once, and runs it.
#
#   peer.sh install NAME
#   peer.sh run NAME [ARGUMENT]...
#
# NAME is a folder beside this script. KAPPACTL_BENCH_CACHE moves the cache, KAPPACTL_BENCH_HEAP sets Java's heap (2g).
# Exit code 69: Java's compiler or Maven is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${KAPPACTL_BENCH_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kappactl-bench}

fail() { echo "peer.sh: $1" >&2; exit "${2:-1}"; }

[ $# -ge 2 ] || fail "usage: peer.sh install|run NAME [ARGUMENT]..." 2
verb=$1 name=$2
shift 2
[ -f "$here/$name/pom.xml" ] || fail "there is no peer $name" 2
home=$cache/$name-$(cat "$here/$name/pom.xml" "$here/$name/Rollup.java" | cksum | cut -d' ' -f1)

install() {
  [ -d "$home" ] && return
  command -v javac >/dev/null || fail "javac is missing: install a JDK, version 17 or newer" 69
  command -v mvn >/dev/null || fail "mvn is missing: install Apache Maven" 69
  mkdir -p "$cache"
  local part
  part=$(mktemp -d "$cache/part.XXXXXX")
  echo "peer.sh: fetching $name" >&2
  if ! mvn -B -q -f "$here/$name/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$part/jars" >"$part/log" 2>&1; then
    tail -20 "$part/log" >&2
    rm -rf "$part"
    fail "maven could not fetch the packages of $name"
  fi
  javac -nowarn -d "$part/classes" -cp "$part/jars/*" "$here/$name/Rollup.java" || { rm -rf "$part"; fail "$name does not compile"; }
  mv -T "$part" "$home" 2>/dev/null || rm -rf "$part" # another may have been first
}

# What Flink's own scripts open on Java 17 and newer; the others need none of it.
opens=()
for p in lang net io nio text time util util.concurrent util.concurrent.atomic util.concurrent.locks; do
  opens+=("--add-opens=java.base/java.$p=ALL-UNNAMED")
done
opens+=(--add-opens=java.base/sun.nio.ch=ALL-UNNAMED)

install
case $verb in
  install) ;;
  run) exec java "-Xmx${KAPPACTL_BENCH_HEAP:-2g}" "${opens[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$home/classes:$home/jars/*" Rollup "$@" ;;
  *) fail "usage: peer.sh install|run NAME [ARGUMENT]..." 2 ;;
esac
