#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the CPU use of each idle policy and the delay of a packet after a pause: pings between two tap guests of one worker, 10 ms apart.

usage: sudo taskset -c 0,1 tests/perf/idle.py [PINGS]     the worker has the last CPU of these, and ping the first
"""
import contextlib
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "packet"))
from daemon import Daemon  # noqa: E402

GUESTS = {"g1": "10.1.0.11", "g2": "10.1.0.12"}
QUIET = 3  # seconds


@contextlib.contextmanager
def namespaces():
    """A network namespace for each guest; it ends with the process that holds it."""
    holders = {g: subprocess.Popen(["unshare", "--net", "sleep", "600"]) for g in GUESTS}
    try:
        time.sleep(0.3)
        yield {g: f"/proc/{p.pid}/ns/net" for g, p in holders.items()}
    finally:
        for p in holders.values():
            p.kill()
            p.wait()


def plug(daemon, nets):
    daemon.cli("vrf", "add", "red")
    for g, address in GUESTS.items():
        daemon.cli("port", "add", g, "tenant", "tap", "--netns", nets[g], "--vrf", "red", "--gateway", "10.1.0.1/24",
                   "--guest-address", address, "--proxy-arp")
        for command in (f"address add {address}/24 dev {g}", "link set lo up"):
            subprocess.run(["nsenter", f"--net={nets[g]}", "ip", *command.split()], check=True)


def cpu_ticks(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def cost(daemon):
    """The worker's CPU use without traffic, and its system calls per second."""
    state = daemon.cli("worker", "show", 0)[0]["state"]
    start, before = time.monotonic(), cpu_ticks(daemon.process.pid, state["tid"])
    time.sleep(QUIET)
    ticks, seconds = cpu_ticks(daemon.process.pid, state["tid"]) - before, time.monotonic() - start
    calls = int(daemon.cli("worker", "show", 0)[0]["state"]["system_calls"]) - int(state["system_calls"])
    return 100 * ticks / os.sysconf("SC_CLK_TCK") / seconds, calls / seconds


def ping(nets, n, cpu):
    done = subprocess.run(["nsenter", f"--net={nets['g1']}", "taskset", "-c", str(cpu), "ping", "-n", "-c", str(n), "-i", "0.01", GUESTS["g2"]],
                          capture_output=True, text=True, check=True)
    times = sorted(float(t) * 1000 for t in re.findall(r"time=([0-9.]+) ms", done.stdout))
    return len(times), times[len(times) // 2], times[len(times) * 99 // 100]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    cpus = sorted(os.sched_getaffinity(0))
    daemon = Daemon("--service-cpus", str(cpus[0])) if len(cpus) > 1 else Daemon()
    try:
        with namespaces() as nets:
            plug(daemon, nets)
            ping(nets, 20, cpus[0])
            print("policy     CPU %  calls/s  answered  median us  p99 us")
            for idle in ("spin", "pause", "yield", "sleep", "interrupt"):
                daemon.cli("worker", "set", 0, "--idle", idle)
                time.sleep(0.5)
                busy, calls = cost(daemon)
                answered, median, p99 = ping(nets, n, cpus[0])
                print(f"{idle:10} {busy:5.1f}  {calls:7.0f}  {answered:8}  {median:9.0f}  {p99:6.0f}", flush=True)
    finally:
        daemon.stop()


if __name__ == "__main__":
    main()
