#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the eBPF programs of internal/explain/kernel, or with --check shows whether what is committed is current. The object
# is what clang 14 (Debian 12) makes; another version's may differ, and does the same.
set -eu
cd "$(dirname "$0")/.."
dir=internal/explain/kernel
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

tools/go.sh tool bpf2go -cc clang -strip llvm-strip -target bpfel -go-package kernel -output-dir "$tmp" \
  -type key -type sum -type worker -type gap -type cpu workers $dir/bpf/workers.bpf.c \
  -- -O2 -g -Wall -Werror -Wno-missing-declarations "-I/usr/include/$(gcc -dumpmachine)"

if [ "${1:-}" != --check ]; then
  cp "$tmp"/workers_bpfel.* $dir
  echo "==> bpf: $dir written"
elif diff -u $dir/workers_bpfel.go "$tmp/workers_bpfel.go" && cmp $dir/workers_bpfel.o "$tmp/workers_bpfel.o"; then
  echo "==> bpf: $dir is current"
else
  echo "$dir is not what bpf/*.c gives; run 'make bpf' and commit" >&2
  exit 1
fi
