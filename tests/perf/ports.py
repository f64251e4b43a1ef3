#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long `corelane apply` takes to add a thousand tenant ports of each kind, and to find that nothing is left to do; and how
long the daemon takes to stop with them."""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import Daemon  # noqa: E402

PORTS = 1000
RUNS = 3
DEVICES = {"tap": "tap: {{}}", "memif": "memif: {{socket: {dir}/{n}, role: MEMIF_ROLE_SERVER}}", "vhost": "vhost: {{socket: {dir}/{n}}}"}


def timed(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def measure(kind):
    router = Daemon("--memory", "4096", "--mbufs", "400000")
    try:
        path = os.path.join(router.dir, "node.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write("vrfs: [{name: red}]\nports:\n")
            for n in range(PORTS):
                f.write(f"  - {{name: port{n}, role: PORT_ROLE_TENANT, vrf: red, {DEVICES[kind].format(dir=router.dir, n=n)}}}\n")
        apply = [router.cli_path, "--socket", router.socket, "apply", "-f", path]
        times = [timed(lambda: subprocess.run(apply, check=True, stdout=subprocess.DEVNULL)) for _ in range(2)]
        router.process.terminate()
        return *times, timed(lambda: router.process.wait(timeout=120))
    finally:
        router.stop()


def main():
    print(f"{PORTS} ports of a kind, {RUNS} runs: median (lowest to highest), in seconds")
    print(f"{'kind':6}{'added':>22}{'applied again':>22}{'stop':>22}")
    for kind in DEVICES:
        columns = zip(*(measure(kind) for _ in range(RUNS)))
        print(f"{kind:6}" + "".join(f"{f'{statistics.median(c):.1f} ({min(c):.1f} to {max(c):.1f})':>22}" for c in columns), flush=True)


if __name__ == "__main__":
    main()
