#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what `make build` made, or takes it away: install.sh install|uninstall   (environment: PREFIX, DESTDIR)
set -eu
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
manifest=$prefix/share/corelane/installed-files

put() { # MODE FILE TARGET
  install -D -m "$1" "$2" "$root$3"
  echo "$3" >>"$root$manifest"
}

# The corelaned in bin/ is for tests and labs: it can inject faults.
program_file() { # NAME
  case $1 in
    corelaned) echo build/dataplane/release/corelaned ;;
    *) echo "bin/$1" ;;
  esac
}

install_all() {
  local program page unit tmp
  tmp=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$tmp'" EXIT
  mkdir -p "$(dirname "$root$manifest")"
  : >"$root$manifest"
  for program in bin/*; do
    program=$(basename "$program")
    put 755 "$(program_file "$program")" "$prefix/bin/$program"
  done
  bin/corelane completion bash >"$tmp/completion"
  put 644 "$tmp/completion" "$prefix/share/bash-completion/completions/corelane"
  mkdir "$tmp/man"
  bin/corelane man "$tmp/man"
  for program in corelaned corelane-gen corelane-agent; do
    help2man --no-info --section 8 --name "$("$(program_file "$program")" --help | sed -n '1s/^[^:]*: //p')" --output "$tmp/man/$program.8" "$(program_file "$program")"
  done
  for page in "$tmp"/man/*.[1-9]; do
    put 644 "$page" "$prefix/share/man/man${page##*.}/$(basename "$page")"
  done
  for unit in packaging/*.service packaging/corelaned-root.conf; do
    sed "s|@bindir@|$prefix/bin|g; s|@libexecdir@|$prefix/libexec/corelane|g" "$unit" >"$tmp/unit"
    case $unit in
      *.service) put 644 "$tmp/unit" "$prefix/lib/systemd/system/$(basename "$unit")" ;;
      *) put 644 "$tmp/unit" "$prefix/share/doc/corelane/$(basename "$unit")" ;;
    esac
  done
  put 644 packaging/corelane.udev "$prefix/lib/udev/rules.d/60-corelane.rules"
  put 644 packaging/corelane.sysusers "$prefix/lib/sysusers.d/corelane.conf"
  put 755 packaging/reserve-hugepages "$prefix/libexec/corelane/reserve-hugepages"
  put 644 packaging/corelane.default "$prefix/share/corelane/corelane.default"
  while read -r page; do # pages with what they link to
    put 644 "$page" "$prefix/share/doc/corelane/$page"
  done < <(printf '%s\n' LICENSE README.md CONTRIBUTING.md tests/perf/instructions.txt && find docs api/*.proto -type f | sort)
  echo "==> installed $(wc -l <"$root$manifest") files under $root$prefix"
}

uninstall_all() {
  local file folder
  [ -e "$root$manifest" ] || { echo "$root$manifest is missing: nothing to uninstall under $root$prefix" >&2; exit 1; }
  while read -r file; do
    rm -f "$root$file"
  done <"$root$manifest"
  rm -f "$root$manifest"
  for folder in share/corelane share/doc/corelane libexec/corelane; do
    [ ! -d "$root$prefix/$folder" ] || find "$root$prefix/$folder" -depth -type d -empty -delete
  done
  echo "==> uninstalled from $root$prefix"
}

case ${1:-} in
  install) install_all ;;
  uninstall) uninstall_all ;;
  *) echo "usage: $0 install|uninstall" >&2 && exit 2 ;;
esac
[ -z "$root" ] || exit 0
[ "$1" != install ] || ! command -v systemd-sysusers >/dev/null || systemd-sysusers "$prefix/lib/sysusers.d/corelane.conf"
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ ! -d /run/udev ] || udevadm control --reload
# Devices that were bound to vfio-pci before get their group too.
[ "$1" != install ] || [ ! -d /run/udev ] || udevadm trigger --subsystem-match=vfio
