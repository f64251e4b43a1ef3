#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# go build, which is silent for minutes at its first run: shows every 20th package that it compiles, and all that is wrong.
set -euo pipefail
"$(dirname "$0")/go.sh" build -v "$@" 2>&1 | awk '!/^[a-zA-Z0-9._\/-]+$/ || n++ % 20 == 0 { print "    " $0; fflush() }'
