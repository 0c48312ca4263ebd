#!/usr/bin/env bash
# A real one-node Kafka broker (KRaft) for tests and benchmarks, from Maven packages.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: kafka.sh install               fetch the jars into the cache (once)
       kafka.sh run [OPTION]...       run a broker in the foreground until stdin ends or it is signalled
       kafka.sh with [OPTION]... -- COMMAND [ARG]...
                                      run COMMAND beside a broker, KAPPACTL_TEST_BROKERS=HOST:PORT in its environment

options: --data DIR       keep the log there (default: a temporary folder, removed at the end)
         --port N         listen there (default: a free port)
         --heap SIZE      Java heap (default 512m)
         --short-lived    compile little and collect simply: a third less CPU time for a broker of minutes
         --set KEY=VALUE  another broker setting; may be repeated

run prints one line when the broker is ready: ready brokers=HOST:PORT pid=PID data=DIR
Needs Java 17 or newer; install also Maven. KAPPACTL_KAFKA_CACHE moves the cache.
Exit code 69: Java or Maven is missing.
TEXT
}

self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/kafka.sh
pom=$(dirname "$self")/pom.xml
cache=${KAPPACTL_KAFKA_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/kappactl-kafka}
jars=$cache/jars-$(cksum <"$pom" | cut -d' ' -f1)
light=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1)

fail() { echo "kafka.sh: $1" >&2; exit "${2:-1}"; }

need_java() {
  java=${JAVA_HOME:+$JAVA_HOME/bin/}java
  command -v "$java" >/dev/null || fail "java is missing: install a JRE, version 17 or newer" 69
  local major
  major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
  [ "${major:-0}" -ge 17 ] || fail "java is version ${major:-unknown}; Kafka needs 17 or newer" 69
}

# Several test processes may install at once: each fills its own folder, the first rename wins.
install() {
  [ -d "$jars" ] && return
  need_java
  command -v mvn >/dev/null || fail "mvn is missing: install Apache Maven" 69
  mkdir -p "$cache"
  local part
  part=$(mktemp -d "$cache/part.XXXXXX")
  if ! mvn -B -q -f "$pom" org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$part/jars" >"$part/log" 2>&1; then
    tail -20 "$part/log" >&2
    rm -rf "$part"
    fail "maven could not fetch the packages of $pom"
  fi
  [ -d "$jars" ] || mv "$part/jars" "$jars" 2>/dev/null || [ -d "$jars" ] || fail "cannot write $jars"
  rm -rf "$part"
}

used() { (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Below the usual range of ports for outgoing connections, so that no client takes it between now and the broker's start.
free_port() {
  local p
  while :; do
    p=$((15000 + (RANDOM * 32768 + RANDOM) % 15000))
    [ "$p" != "${1:-}" ] && ! used "$p" && { echo "$p"; return; }
  done
}

settings() {
  cat <<TEXT
node.id=1
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$control
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$control
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$data/log
auto.create.topics.enable=false
default.replication.factor=1
# Internal topics: one replica, few partitions, or the first transaction takes seconds.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# A broker that was killed may register again only when its session is over.
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
# Retention, compaction and transaction timeouts act within a second or two.
log.initial.task.delay.ms=500
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=1000
log.cleaner.backoff.ms=500
log.cleaner.dedupe.buffer.size=16777216
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
TEXT
  [ ${#more[@]} -eq 0 ] || printf '%s\n' "${more[@]}"
}

options() {
  data='' port='' heap=512m short='' more=() rest=()
  while [ $# -gt 0 ]; do
    case $1 in
      --) shift; rest=("$@"); return ;;
      --short-lived) short=yes; shift; continue ;;
      --data | --port | --heap | --set) [ $# -ge 2 ] || fail "$1 needs a value" 2 ;;
      *) usage >&2; exit 2 ;;
    esac
    case $1 in
      --data) data=$2 ;;
      --port) port=$2 ;;
      --heap) heap=$2 ;;
      --set) more+=("$2") ;;
    esac
    shift 2
  done
}

format_log() {
  [ -e "$data/log/meta.properties" ] && return
  "$java" -Xmx128m "${light[@]}" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$jars/*" \
    kafka.tools.StorageTool format --config "$data/server.properties" --cluster-id "$(uuid)" >"$data/format.txt" 2>&1 ||
    { cat "$data/format.txt" >&2; fail "cannot format $data/log"; }
}

uuid() { head -c 16 /dev/urandom | base64 | tr '+/' 'xy' | cut -c1-22; }

# What a short-lived broker starts with, made once for each version of Java and of the jars: a log that is formatted, and an archive
# of the classes that a broker loads. They halve the CPU time of a start. Where they cannot be made, a broker starts without.
prepare() {
  ready=$jars-ready-$("$java" -version 2>&1 | cat - "$self" | cksum | cut -d' ' -f1)
  if [ ! -d "$ready" ]; then
    local part
    part=$(mktemp -d "$cache/part.XXXXXX")
    (prepare_in "$part") >"$part/output.txt" 2>&1 || true
    [ -d "$ready" ] || mv "$part" "$ready" 2>/dev/null || true
    rm -rf "$part"
  fi
  archive=()
  [ ! -e "$ready/classes.jsa" ] || archive=(-XX:SharedArchiveFile="$ready/classes.jsa" -Xlog:cds=off -Xlog:cds+dynamic=off)
  if [ -e "$ready/formatted/meta.properties" ] && [ ! -e "$data/log" ]; then
    cp -R "$ready/formatted" "$data/log"
    sed -i.as-formatted -e "s/^cluster.id=.*/cluster.id=$(uuid)/" -e "s/^directory.id=.*/directory.id=$(uuid)/" "$data/log/meta.properties"
    rm "$data/log/meta.properties.as-formatted"
  fi
}

# Runs in a process of its own: it changes what a broker is started with.
prepare_in() {
  temporary='' watcher=''
  trap cleanup EXIT
  data=$1 more=()
  port=$(free_port)
  control=$(free_port "$port")
  settings >"$data/server.properties"
  format_log
  cp -R "$data/log" "$data/formatted.part" && mv "$data/formatted.part" "$data/formatted"
  : >"$data/broker.txt"
  start_broker "${light[@]}" -XX:ArchiveClassesAtExit="$data/classes.part"
  await_ready
  kill "$broker"
  wait "$broker" || true
  broker=
  rm -r "$data/log"
  mv "$data/classes.part" "$data/classes.jsa"
}

# Options of Java follow.
start_broker() {
  "$java" -Xms64m "-Xmx${heap:-512m}" "$@" -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true \
    -Dorg.slf4j.simpleLogger.showDateTime=true -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS \
    -cp "$jars/*" kafka.Kafka "$data/server.properties" </dev/null >>"$data/broker.txt" 2>&1 &
  broker=$!
}

await_ready() {
  local i
  for ((i = 0; i < 900; i++)); do
    grep -q 'Kafka Server started' "$data/broker.txt" && return
    kill -0 "$broker" 2>/dev/null || { tail -20 "$data/broker.txt" >&2; fail "the broker ended while it started"; }
    sleep 0.1
  done
  tail -20 "$data/broker.txt" >&2
  fail "the broker was not ready after 90 s"
}

cleanup() {
  trap '' TERM INT HUP
  [ -z "${watcher:-}" ] || kill "$watcher" 2>/dev/null || true
  [ -z "${broker:-}" ] || kill -9 "$broker" 2>/dev/null || true
  wait 2>/dev/null || true
  [ -z "${temporary:-}" ] || rm -rf "$temporary"
}

run() {
  options "$@"
  need_java
  install
  trap cleanup EXIT
  trap 'exit 143' TERM INT HUP
  if [ -z "$data" ]; then
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/kappactl-kafka.XXXXXX")
    data=$temporary
  fi
  mkdir -p "$data"
  data=$(cd "$data" && pwd -P)
  port=${port:-$(free_port)}
  local control
  control=$(free_port "$port")
  settings >"$data/server.properties"
  local how=(-XX:+UseG1GC) archive=()
  if [ -n "$short" ]; then
    prepare
    how=("${light[@]}" ${archive[@]+"${archive[@]}"})
  fi
  format_log
  : >"$data/broker.txt"
  start_broker "${how[@]}"
  # Whoever holds the other end of stdin may be killed; the end of the file is what is left of it then.
  exec 3<&0
  (while read -r _ <&3; do :; done; kill -TERM $$) >/dev/null 2>&1 &
  watcher=$!
  await_ready
  echo "ready brokers=127.0.0.1:$port pid=$broker data=$data"
  wait "$broker" || true
}

with() {
  options "$@"
  [ ${#rest[@]} -gt 0 ] || { usage >&2; exit 2; }
  local args=() line pid='' code=0 s
  [ -z "$short" ] || args+=(--short-lived)
  [ -z "$data" ] || args+=(--data "$data")
  [ -z "$port" ] || args+=(--port "$port")
  for s in ${more[@]+"${more[@]}"}; do args+=(--set "$s"); done
  coproc server { exec "$self" run --heap "$heap" ${args[@]+"${args[@]}"}; }
  pid=$server_PID
  read -r line <&"${server[0]}" || { wait "$pid" || exit $?; exit 1; }
  line=${line#*brokers=}
  KAPPACTL_TEST_BROKERS=${line%% *} "${rest[@]}" || code=$?
  kill "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
  exit "$code"
}

verb=${1:-}
[ $# -eq 0 ] || shift
case $verb in
  install) install; echo "$jars" ;;
  run) run "$@" ;;
  with) with "$@" ;;
  help | -h | --help) usage ;;
  *) usage >&2; exit 2 ;;
esac
