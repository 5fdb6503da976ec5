#!/usr/bin/env bash
# Provides programs for the tests. Usage: debian-program.sh PACKAGE PROGRAM…
# If a program is not installed, the script unpacks the Debian package into .cache/debian, without root.
set -euo pipefail
cd "$(dirname "$0")/.."

package=$1
shift
is_here() {
  for program in "$@"; do command -v "$program" || return 1; done
}

is_here "$@" && exit
command -v apt-get >/dev/null || {
  echo "$* is missing: install it, for example with the package $package of Debian." >&2
  exit 1
}
cache="$PWD/.cache/debian"
if ! PATH="$cache/bin" is_here "$@" >/dev/null; then
  echo "Unpacking $package into .cache/debian"
  mkdir -p "$cache"/{state/lists/partial,cache/archives/partial,bin}
  apt=(apt-get -qq -o "Dir::State=$cache/state" -o "Dir::Cache=$cache/cache" -o Dir::State::status=/var/lib/dpkg/status
    -o Debug::NoLocking=true -o APT::Sandbox::User=root)
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends --download-only "$package"
  for archive in "$cache"/cache/archives/*.deb; do dpkg -x "$archive" "$cache/root"; done
  for program in "$@"; do
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' \
      "$cache/root/usr/lib/$(uname -m)-linux-gnu" "$cache/root/usr/bin/$program" >"$cache/bin/$program"
    chmod +x "$cache/bin/$program"
  done
fi
for program in "$@"; do "$cache/bin/$program" --version; done
