#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Regenerates the Go side of the API from api/*.proto, or with --check shows whether the committed code is current.
# The generators are the ones pinned in go.mod.
set -eu
cd "$(dirname "$0")/.."
committed=internal/api/v1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for generator in protoc-gen-go protoc-gen-go-ttrpc; do
  printf '#!/bin/sh\nexec "%s/tools/go.sh" tool %s "$@"\n' "$PWD" "$generator" >"$tmp/$generator"
  chmod +x "$tmp/$generator"
done
mkdir "$tmp/out"
PATH=$tmp:$PATH protoc -I api --go_out="$tmp/out" --go_opt=paths=source_relative \
  --go-ttrpc_out="$tmp/out" --go-ttrpc_opt=paths=source_relative api/*.proto

if [ "${1:-}" = --check ]; then
  if ! diff -ru "$committed" "$tmp/out"; then
    echo "$committed is not what api/*.proto gives; run 'make api' and commit" >&2
    exit 1
  fi
  echo "==> api: $committed is current"
else
  rm -f "$committed"/*.pb.go "$committed"/*_ttrpc.pb.go
  cp "$tmp"/out/* "$committed"/
  echo "==> api: $committed written"
fi
