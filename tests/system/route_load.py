# SPDX-License-Identifier: Apache-2.0
"""Adds, replaces and deletes routes under traffic: no datagram may be lost. usage: route_load.py [ROUTES]"""
import os
import sys
import time

import soak

WINDOW = 32  # datagrams of a flow on their way: no queue of a kernel can be full, however late its reader is
GROWTH = 256 << 20  # bytes: tables keep the memory of a million routes


def write_routes(path, count):
    with open(path, "w") as f:
        for i in range(count):
            f.write("%d.%d.%d.0/24 100\n" % (11 + i // 65536, i // 256 % 256, i % 256))


def timed(what, count, call):
    start = time.monotonic()
    call()
    seconds = time.monotonic() - start
    print("  %s %d routes in %.2f s: %.0f routes/s" % (what, count, seconds, count / seconds), flush=True)


def print_graph(host):
    print("  %-20s %10s %14s %14s" % ("node of h1", "packets", "packets/call", "cycles/packet"))
    for n in host.json("graph"):
        packets, calls = int(n.get("packets", 0)), int(n.get("calls", 0))
        if packets:
            print("  %-20s %10d %14.1f %14.0f" % (n["name"], packets, packets / calls, int(n["cycles"]) / packets))


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    lab, failed = soak.Lab(), ["it did not finish"]
    try:
        lab.up()
        h = lab.hosts[0]
        path = os.path.join(lab.dir, "routes")
        write_routes(path, count)
        before = [soak.settled(h) for h in lab.hosts]
        start_drops = [h.drops() for h in lab.hosts]
        flows = [soak.Flow(lab, o, a, 3 - a, WINDOW) for o in soak.OVERLAYS for a in (1, 2)]
        for _ in range(10 * soak.PATIENCE):
            if all(f.got.value for f in flows):
                break
            time.sleep(0.1)
        timed("added", count, lambda: h.must("route", "add", "--vrf", "mplsoudp", "--file", path))
        timed("replaced", count, lambda: h.must("route", "add", "--vrf", "mplsoudp", "--file", path))
        timed("deleted", count, lambda: h.must("route", "del", "--vrf", "mplsoudp", "--file", path))
        for f in flows:
            f.stop(soak.PATIENCE)
        print_graph(h)
        after = [soak.settled_again(h, b) for h, b in zip(lab.hosts, before)]
        failed = soak.check(lab, flows, before, after, [soak.since(h.drops(), s) for h, s in zip(lab.hosts, start_drops)], GROWTH)
        failed += ["%s lost datagrams" % f.name for f in flows if f.sent.value != f.got.value]
    finally:
        failed += lab.end()
    return soak.report(lab, failed, "ok: no datagram was lost")


if __name__ == "__main__":
    sys.exit(main())
