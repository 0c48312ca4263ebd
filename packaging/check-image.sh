#!/usr/bin/env bash
# Runs the steps of packaging/Dockerfile without a container runtime: the build's context is what git tracks less .dockerignore, its
# RUN lines run in a copy of it, and the binary then runs as the image's user in a root folder that holds nothing but it and the
# libraries it links. (The apt-get line of the last stage is not run: the libraries are this machine's.) With an argument
# the root folder stays there. Needs root for chroot; without, the binary runs where it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fail() { echo "check-image.sh: $1" >&2; exit 1; }

temp=$(mktemp -d "${TMPDIR:-/tmp}/kappactl-image.XXXXXX")
trap 'rm -rf "$temp"' EXIT
root=${1:-$temp/root}
mkdir -p "$temp/src" "$temp/out" "$root/usr/local/bin" "$root/tmp"
chmod 755 "$temp" "$root" && chmod 1777 "$root/tmp"

git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  while IFS= read -r pattern; do
    case $pattern in '' | '#'*) continue ;; esac
    case $file in $pattern | $pattern/*) continue 2 ;; esac
  done <.dockerignore
  [ ! -e "$file" ] || cp --parents -P "$file" "$temp/src/"
done

# The RUN lines of the first stage, /src and /out being folders of this check.
stage=0
while IFS= read -r line; do
  case $line in
    'FROM '*) stage=$((stage + 1)) ;;
    'RUN '*)
      [ "$stage" -eq 1 ] || continue
      step=${line#RUN }
      echo "check-image.sh: $step" >&2
      (cd "$temp/src" && RELEASE=checked bash -euo pipefail -c "${step//\/out\//$temp/out/}") || fail "the step fails: $step"
      ;;
    'COPY --from=build '*)
      read -r _ _ from _ <<<"$line"
      [ -e "$temp$from" ] || fail "the first stage has no $from to copy"
      ;;
  esac
done <packaging/Dockerfile
[ "$stage" -eq 2 ] || fail "packaging/Dockerfile has $stage stages, want 2"

user=$(sed -n 's/^USER //p' packaging/Dockerfile)
case $user in '' | root* | 0 | 0:*) fail "the image runs as root" ;; esac
install -m 755 "$temp/out/kappactl" "$root/usr/local/bin/kappactl"
ldd "$temp/out/kappactl" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p' | while read -r library; do
  case $(basename "$library") in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | ld-linux*) ;; # libc6, in every Debian image
    libstdc++.so.* | libgcc_s.so.*) ;;                                                                 # libstdc++6 and what it needs
    *) fail "the binary links $library, which no package of the image's last stage holds" ;;
  esac
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
if [ "$(id -u)" -eq 0 ]; then
  chroot --userspec="$user" "$root" /usr/local/bin/kappactl version
else
  "$root/usr/local/bin/kappactl" version
fi
