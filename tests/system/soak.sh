#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Traffic between two hosts while ports, routes, tunnels and workers are added and removed. usage: soak.sh SECONDS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec /usr/bin/python3 "$here/soak.py" "${1:-600}"
