#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the C side with meson and the Go side with go; the programs end up in bin/, with the corelaned of tests and labs.
# The one that `make install` takes cannot inject faults, and stays in build/dataplane/release/.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/owner.sh
. tools/owner.sh
# shellcheck source=tools/ccache.sh
. tools/ccache.sh

if [ ! -e build/build.ninja ]; then
  echo "==> build: meson setup"
  meson setup build >build.log 2>&1 || { cat build.log && rm -f build.log && exit 1; }
  rm -f build.log
fi
echo "==> build: C"
ninja -C build
echo "==> build: Go"
mkdir -p bin
# Results of the benchmark name the commit. Under sudo the checkout is somebody else's, and its index is left alone.
commit=$(GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' describe --always --dirty 2>/dev/null || true)
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
cli=github.com/corelane/corelane/internal/cli
tools/go-build.sh -buildvcs=false -trimpath -buildmode=pie -ldflags "-bindnow -X $cli.Version=$version -X $cli.Commit=$commit" -o bin/ ./cmd/...
# A running program keeps its file: the new one takes its name, not its place.
for program in dataplane/corelaned generator/corelane-gen tests/perf/corelane-flow-bench tests/perf/corelane-scale-bench; do
  target=bin/${program##*/}
  cmp -s "build/$program" "$target" || { cp "build/$program" bin/.new && mv bin/.new "$target"; }
done
echo "==> build: done: $(echo bin/*)"
