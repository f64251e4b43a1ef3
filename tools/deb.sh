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
cat >"$stage/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
[ "$1" != remove ] || [ ! -d /run/systemd/system ] || systemctl stop corelane-agent.service corelaned.service
EOF
chmod 755 "$stage"/DEBIAN/{postinst,postrm,prerm}
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$stage" "$out/corelane_${version}_$arch.deb"
