#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing from the distribution: deps.sh [build|demo|test|bench|lint|deb|all]
#
# Knows Debian 12 (bookworm). Elsewhere it names what is needed and leaves the installing to you.
set -euo pipefail
cd "$(dirname "$0")/.."

build=(ca-certificates gcc libc6-dev meson ninja-build pkgconf
  dpdk libdpdk-dev libprotobuf-c-dev protobuf-c-compiler libevent-dev libpcap-dev libsystemd-dev libseccomp-dev libcmocka-dev help2man)
demo=(iproute2 iputils-ping ethtool iperf3 tcpdump tshark)
bench=(iproute2 iperf3 nftables dpdk-dev openvswitch-switch openvswitch-switch-dpdk) # the routers that Corelane is compared with
test=("${demo[@]}" "${bench[@]}" ccache clang llvm libbpf-dev libclang-rt-14-dev protobuf-compiler python3 python3-pytest python3-pytest-xdist python3-scapy strace
  stress-ng linux-perf gdb bpftrace fio
  valgrind chromium graphviz systemd-container dpkg-dev frr bird2
  dhcpcd-base isc-dhcp-client udhcpc) # clients of DHCP that guests have; the first one also does IPv6, MTU and routes by itself, without a service
lint=(clang clang-format cppcheck codespell shellcheck pyflakes3)

profile=${1:-all}
case $profile in
  build) packages=("${build[@]}") ;;
  demo) packages=("${build[@]}" "${demo[@]}") ;;
  test) packages=("${build[@]}" "${test[@]}") ;;
  bench) packages=("${build[@]}" "${bench[@]}") ;;
  lint) packages=("${build[@]}" "${lint[@]}") ;;
  deb) packages=("${build[@]}" dpkg-dev) ;;
  all) packages=("${build[@]}" "${test[@]}" "${lint[@]}") ;;
  *) echo "usage: $0 [build|demo|test|bench|lint|deb|all]" >&2 && exit 2 ;;
esac

# shellcheck source=/dev/null
. /etc/os-release
if [ "${ID:-}:${VERSION_ID:-}" != debian:12 ]; then
  echo "==> deps: this is ${PRETTY_NAME:-unknown}; only Debian 12 is supported, so nothing is installed. Needed, by Debian's names:"
  echo "    ${packages[*]}, and Go >= 1.21"
  exit 0
fi

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')
missing=()
for p in "${packages[@]}"; do
  grep -qxF "$p" <<<"$installed" || missing+=("$p")
done
needs_go=
tools/go.sh which >/dev/null 2>&1 || needs_go=yes

if [ ${#missing[@]} = 0 ] && [ -z "$needs_go" ]; then
  echo "==> deps ($profile): everything is there"
  exit 0
fi

backports=/etc/apt/sources.list.d/corelane-backports.sources
echo "==> deps ($profile): missing: ${missing[*]} ${needs_go:+Go >= $(sed -n 's/^go //p' go.mod)}"
if [ "$(id -u)" != 0 ]; then
  echo "Installing needs root. Run: sudo make deps PROFILE=$profile" >&2
  [ ${#missing[@]} = 0 ] || echo "or: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 2
fi

# Debian 12's own Go is 1.19. Backports carry one that can fetch the toolchain that go.mod asks for; they are taken from
# the mirror that the machine's own sources name for bookworm.
if [ -n "$needs_go" ] && ! apt-cache policy 2>/dev/null | grep -q 'n=bookworm-backports'; then
  # shellcheck disable=SC2016 # apt fills these in
  mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "bookworm" && $2 == "main" { print $3; exit }')
  if [ -z "$mirror" ]; then
    echo "deps: no source of apt names bookworm's main component, so there is no mirror to take Go from." >&2
    echo "Add one to /etc/apt/sources.list.d, or install Go >= $(sed -n 's/^go //p' go.mod)." >&2
    exit 2
  fi
  echo "==> deps: adding Debian's bookworm-backports for Go ($backports; remove the file to undo)"
  cat >"$backports" <<EOF
Types: deb
URIs: $mirror
Suites: bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
EOF
fi

# apt-get prints three lines per package; every 25th shows that it moves. Its errors are on stderr.
apt_install() {
  echo "==> deps: apt-get install $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" |
    awk '/^(Get:|Setting up)/ && n++ % 25 == 0 { print "    " $0; fflush() } /newly installed|disk space/'
}

# Open vSwitch and FRR come with services, and Open vSwitch takes the place of one that may run without DPDK. Tests and
# benchmark start their own: the machine's are neither started nor changed.
policy=/usr/sbin/policy-rc.d
keep_services_still() {
  vswitchd=$(readlink /etc/alternatives/ovs-vswitchd || true)
  [ ! -e $policy ] || mv $policy $policy.corelane
  trap services_as_before EXIT
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
}

services_as_before() {
  rm -f $policy
  [ ! -e $policy.corelane ] || mv $policy.corelane $policy
  if [ -n "$vswitchd" ]; then
    update-alternatives --quiet --set ovs-vswitchd "$vswitchd"
  fi
  [ -d /run/systemd/system ] || return 0
  local package
  for package in "${missing[@]}"; do
    case $package in
      openvswitch-switch | frr) systemctl --quiet disable "$package.service" ;;
      bird2) systemctl --quiet disable bird.service ;;
    esac
  done
}

echo "==> deps: apt-get update"
apt-get update -q
if [[ " ${missing[*]} " =~ " openvswitch-"|" frr "|" bird2 " ]]; then
  keep_services_still
fi
if [ ${#missing[@]} != 0 ]; then
  apt_install "${missing[@]}"
fi
if [ -n "$needs_go" ]; then
  apt_install -t bookworm-backports golang-go
  echo "==> deps: the toolchain of go.mod, from the Go module proxy"
  tools/go.sh version
fi
