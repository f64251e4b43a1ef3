# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by what writes into the checkout: under sudo, files made there go to the owner of the checkout at the end, so that
# `make build` and `make clean` still work without root.
give_back() {
  [ "$(id -u)" != 0 ] || [ "$(stat -c %u .)" = 0 ] || chown -R --reference=. build build-asan build-tsan bin 2>/dev/null || true
}
trap give_back EXIT
