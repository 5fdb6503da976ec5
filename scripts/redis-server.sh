#!/usr/bin/env bash
# Provides a redis-server for the tests. Where none is installed, Debian's package is unpacked into the project's cache, which
# needs no root.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v redis-server && exit
command -v apt-get >/dev/null || {
  echo 'redis-server is missing: install the package redis-server (Debian) or redis.' >&2
  exit 1
}
cache="$PWD/.cache/debian"
if [ ! -x "$cache/bin/redis-server" ]; then
  echo 'Unpacking redis-server into .cache/debian'
  mkdir -p "$cache"/{state/lists/partial,cache/archives/partial,bin}
  apt=(apt-get -qq -o "Dir::State=$cache/state" -o "Dir::Cache=$cache/cache" -o Dir::State::status=/var/lib/dpkg/status
    -o Debug::NoLocking=true -o APT::Sandbox::User=root)
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends --download-only redis-server
  for package in "$cache"/cache/archives/*.deb; do dpkg -x "$package" "$cache/root"; done
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' \
    "$cache/root/usr/lib/$(uname -m)-linux-gnu" "$cache/root/usr/bin/redis-server" >"$cache/bin/redis-server"
  chmod +x "$cache/bin/redis-server"
fi
"$cache/bin/redis-server" --version
