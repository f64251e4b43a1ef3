#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Regenerates what is committed of api/*.proto, or with --check shows whether it is current: the Go side, with the generators
# pinned in go.mod, and the limits of the fields, the roles of the methods and the nouns as C, which come from the Go side.
set -eu
cd "$(dirname "$0")/.."
committed=internal/api/v1
tables="base/field_limits.h base/notations.c api/field_limits.c api/method_roles.c keep/nouns.c"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for generator in protoc-gen-go protoc-gen-go-ttrpc; do
  printf '#!/bin/sh\nexec "%s/tools/go.sh" tool %s "$@"\n' "$PWD" "$generator" >"$tmp/$generator"
  chmod +x "$tmp/$generator"
done
mkdir "$tmp/out"
PATH=$tmp:$PATH protoc -I api --go_out="$tmp/out" --go_opt=paths=source_relative \
  --go-ttrpc_out="$tmp/out" --go-ttrpc_opt=paths=source_relative api/*.proto api/agent/*.proto

if [ "${1:-}" = --check ]; then
  if ! diff -ru "$committed" "$tmp/out"; then
    echo "$committed is not what api/*.proto gives; run 'make api' and commit" >&2
    exit 1
  fi
  mkdir "$tmp/base" "$tmp/api" "$tmp/keep"
  tools/go.sh run ./internal/limits/ctable "$tmp"
  for f in $tables; do
    diff -u "dataplane/$f" "$tmp/$f" || { echo "dataplane/$f is not what api/*.proto give; run 'make api' and commit" >&2; exit 1; }
  done
  echo "==> api: $committed and the tables of limits are current"
else
  rm -f "$committed"/*.pb.go "$committed"/agent/*.pb.go
  cp -r "$tmp"/out/* "$committed"/
  tools/go.sh run ./internal/limits/ctable dataplane
  echo "==> api: $committed and the tables of limits written"
fi
