#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a Go that is new enough for go.mod: go.sh build ./...   `go.sh which` only tells which.
#
# Looked for in PATH, /usr/local/go and Debian's versioned packages, because sudo drops most of PATH. A Go that is too old
# but at least 1.21 fetches the right toolchain itself, from the Go module proxy.
set -eu
cd "$(dirname "$0")/.."
want=$(sed -n 's/^go //p' go.mod)

at_least() { # VERSION MINIMUM
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -1)" = "$2" ]
}

use() { # PROGRAM TOOLCHAIN ARGUMENTS...
  local go=$1 toolchain=$2
  shift 2
  [ "$1" != which ] || { echo "$go" && exit; }
  [ -z "$toolchain" ] || export GOTOOLCHAIN=$toolchain
  exec "$go" "$@"
}

fallback=
for go in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-1.*/bin/go; do
  [ -x "$go" ] || continue
  have=$(cd / && GOTOOLCHAIN=local "$go" version) || continue
  have=${have#go version go}
  have=${have%% *}
  if at_least "$have" "$want"; then
    use "$go" "${GOTOOLCHAIN:-}" "$@"
  elif at_least "$have" 1.21; then
    fallback=$go
  fi
done
if [ -n "$fallback" ]; then
  use "$fallback" auto "$@"
fi
echo "no Go >= 1.21 found; 'sudo make deps' installs it" >&2
exit 127
