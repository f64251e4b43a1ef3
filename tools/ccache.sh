# SPDX-License-Identifier: Apache-2.0
# Sourced by what builds: ccache, where it is installed, compiles again only what changed, in a new checkout too. The paths
# in debug information may then be another checkout's. CLANG is what meson takes as clang; it finds gcc's ccache itself.
# shellcheck shell=bash
export CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime
CLANG=$(command -v ccache >/dev/null && echo "ccache ")clang
export CLANG
