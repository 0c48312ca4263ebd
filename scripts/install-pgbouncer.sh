#!/usr/bin/env bash
# Makes sure that PgBouncer is installed, for the tests behind a transaction pooler. On a Debian-like system with root rights
# it installs it; elsewhere it says what to install and ends with 1.
set -euo pipefail

fail() { echo "install-pgbouncer.sh: $1" >&2; exit 1; }

found() { [ -x "${KAPPACTL_PGBOUNCER:-}" ] || command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]; }

found && exit 0
command -v apt-get >/dev/null || fail "pgbouncer is missing; install it with your system's package manager"
[ "$(id -u)" -eq 0 ] || fail "pgbouncer is missing; run as root: apt-get install pgbouncer"
export DEBIAN_FRONTEND=noninteractive
echo "installing PgBouncer with apt-get" >&2
apt-get update -qq >&2 || echo "install-pgbouncer.sh: apt-get update failed, going on with the lists there are" >&2
# No service of the system's own: tests start theirs, and port 6432 stays free.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
fi
apt-get install -y -qq --no-install-recommends pgbouncer >&2 || fail "apt-get install pgbouncer failed"
found || fail "PgBouncer was installed, but pgbouncer is neither on PATH nor in /usr/sbin"
