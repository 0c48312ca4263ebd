#!/usr/bin/env bash
# Makes sure that PostgreSQL server binaries (15 or newer) are installed. On a Debian-like system with root rights it
# installs them; elsewhere it says what to install and ends with 1. It looks where kappactl does.
set -euo pipefail

minimum=15

fail() { echo "install-postgres.sh: $1" >&2; exit 1; }

# usable FOLDER: both programs are there and new enough.
usable() {
  local version
  [ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 1
  version=$("$1/postgres" --version 2>/dev/null | sed -n 's/.*(PostgreSQL) \([0-9]*\).*/\1/p')
  [ "${version:-0}" -ge "$minimum" ]
}

found() {
  local dir program
  if [ -n "${KAPPACTL_POSTGRES_BIN:-}" ]; then
    usable "$KAPPACTL_POSTGRES_BIN" || fail "KAPPACTL_POSTGRES_BIN=$KAPPACTL_POSTGRES_BIN holds no PostgreSQL server of version $minimum or newer"
    return 0
  fi
  if program=$(command -v postgres); then
    usable "$(dirname "$program")" && return 0
  fi
  if command -v pg_config >/dev/null; then
    usable "$(pg_config --bindir)" && return 0
  fi
  for dir in /usr/lib/postgresql*/bin /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/libexec/postgresql* \
    /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin /home/linuxbrew/.linuxbrew/opt/postgresql@*/bin \
    /Applications/Postgres.app/Contents/Versions/*/bin /usr/local/pgsql/bin; do
    usable "$dir" && return 0
  done
  return 1
}

install_debian() {
  local package newest
  [ "$(id -u)" -eq 0 ] || fail "PostgreSQL server binaries ($minimum or newer) are missing; run as root: apt-get install postgresql"
  export DEBIAN_FRONTEND=noninteractive
  echo "installing PostgreSQL with apt-get" >&2
  apt-get update -qq >&2 || echo "install-postgres.sh: apt-get update failed, going on with the lists there are" >&2
  newest=$(apt-cache search --names-only '^postgresql-[0-9]+$' | sed -n 's/^postgresql-\([0-9]*\) .*/\1/p' | sort -n | tail -1)
  [ "${newest:-0}" -ge "$minimum" ] || fail "this system offers PostgreSQL ${newest:-none}; add the repository at https://apt.postgresql.org and install postgresql-$minimum or newer"
  # No cluster of the system's own: kappactl makes its own, and port 5432 stays free.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  package=postgresql-$newest
  apt-get install -y -qq --no-install-recommends "$package" >&2 || fail "apt-get install $package failed"
}

found && exit 0
if command -v apt-get >/dev/null; then
  install_debian
  found || fail "PostgreSQL was installed, but its server binaries are not where they are looked for; set KAPPACTL_POSTGRES_BIN"
  exit 0
fi
case $(uname -s) in
  Darwin) fail "PostgreSQL server binaries ($minimum or newer) are missing; run: brew install postgresql@17" ;;
esac
for manager in "dnf install postgresql-server" "zypper install postgresql-server" "pacman -S postgresql" "apk add postgresql"; do
  command -v "${manager%% *}" >/dev/null && fail "PostgreSQL server binaries ($minimum or newer) are missing; run: sudo $manager"
done
fail "PostgreSQL server binaries are missing; install the PostgreSQL server ($minimum or newer) with your system's package manager"
