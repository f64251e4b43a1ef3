#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Packs what `make install` would install as corelane_VERSION_ARCH.deb: deb.sh [DIRECTORY]   (default: dist)
# The libraries that it needs are found by dpkg-shlibdeps.
set -eu
out=$(realpath -m "${1:-$(dirname "$0")/../dist}")
cd "$(dirname "$0")/.."
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
arch=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
umask 022

PREFIX=/usr DESTDIR=$stage tools/install.sh install
rm -f "$stage/usr/share/corelane/installed-files" # dpkg keeps its own
install -D -m 644 packaging/corelane.default "$stage/etc/default/corelane"
rm -f "$stage/usr/share/corelane/corelane.default"
rmdir "$stage/usr/share/corelane"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
strip --strip-unneeded "$stage"/usr/bin/corelaned "$stage"/usr/bin/corelane-gen "$stage"/usr/bin/corelane-flow-bench "$stage"/usr/bin/corelane-scale-bench

mkdir "$work/debian" "$stage/DEBIAN"
printf 'Source: corelane\n\nPackage: corelane\nArchitecture: any\n' >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O stage/usr/bin/corelaned stage/usr/bin/corelane-gen stage/usr/bin/corelane-flow-bench stage/usr/bin/corelane-scale-bench | sed 's/^shlibs:Depends=//')

cat >"$stage/DEBIAN/control" <<EOF
Package: corelane
Version: $version
Architecture: $arch
Maintainer: Corelane developers <corelane@localhost>
Depends: $depends, librte-meta-net, librte-meta-bus, librte-meta-mempool, iproute2
Recommends: dpdk
Suggests: tshark, iperf3
Section: net
Priority: optional
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Description: virtual router for compute nodes
 Connects tenants of many hosts through MPLSoUDP, MPLSoGRE, VXLAN and Geneve
 overlays, on CPU cores of its own. The data plane is built on DPDK.
EOF
echo /etc/default/corelane >"$stage/DEBIAN/conffiles"
cat >"$stage/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
! command -v systemd-sysusers >/dev/null || systemd-sysusers corelane.conf
EOF
printf '#!/bin/sh\nset -e\n' >"$stage/DEBIAN/postrm"
for script in postinst postrm; do
  cat >>"$stage/DEBIAN/$script" <<'EOF'
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ ! -d /run/udev ] || udevadm control --reload
EOF
done
# Devices that were bound to vfio-pci before get their group too.
echo '[ ! -d /run/udev ] || udevadm trigger --subsystem-match=vfio' >>"$stage/DEBIAN/postinst"
# An upgrade stops nothing: the installed daemon takes over from the one that runs. Where it may not or cannot, that one
# goes on, and dpkg does, too.
cat >>"$stage/DEBIAN/postinst" <<'EOF'
may() { # ACTION UNIT
  # in a chroot, is-active succeeds without a word
  [ -d /run/systemd/system ] && [ "$(systemctl is-active "$2" 2>/dev/null)" = active ] || return 1
  [ -x /usr/sbin/policy-rc.d ] || return 0
  /usr/sbin/policy-rc.d "$2" "$1" || [ $? -ne 101 ] || { echo "corelane: policy-rc.d forbids: $1 $2"; return 1; }
}
if [ "$1" = configure ] && [ -n "${2:-}" ]; then
  if may reload corelaned.service && ! corelane upgrade; then
    echo "corelane: the corelaned that runs goes on as it is, until the next corelane upgrade or systemctl restart"
  fi
  if may restart corelane-agent.service; then
    systemctl try-restart corelane-agent.service || echo "corelane: corelane-agent was not restarted"
  fi
fi
EOF
cat >"$stage/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
[ "$1" != remove ] || [ ! -d /run/systemd/system ] || systemctl stop corelane-agent.service corelaned.service
EOF
chmod 755 "$stage"/DEBIAN/{postinst,postrm,prerm}
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$stage" "$out/corelane_${version}_$arch.deb"
