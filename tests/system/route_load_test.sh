#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Routes are added, replaced and deleted under traffic; no datagram is lost. usage: route_load_test.sh [ROUTES]
set -eu
[ "$(id -u)" = 0 ] || { echo "needs root for network namespaces" && exit 77; }
exec /usr/bin/python3 "$(dirname "$0")/route_load.py" "${1:-200000}"
