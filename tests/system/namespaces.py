# SPDX-License-Identifier: Apache-2.0
"""Network namespaces with other implementations, for tests against a running corelaned."""
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "packet"))
from daemon import CLONE_NEWNET, PR_SET_PDEATHSIG, checked  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False, timeout=60, **options)
    assert done.returncode == 0, f"{' '.join(str(c) for c in command)}: {done.stderr.strip()}"
    return done.stdout


def wait(condition, what, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {seconds} s"
        time.sleep(0.1)


def dies_with_us():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Namespace:
    def __init__(self, name, mtu):
        self.name = f"corelane-test-{os.getpid()}-{name}"
        self.mtu = mtu
        run("ip", "netns", "add", self.name)

    def close(self):
        run("ip", "netns", "del", self.name)

    def run(self, *command):
        return run("ip", "netns", "exec", self.name, *command)

    def start(self, *command, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.name, *(str(c) for c in command)], stdin=subprocess.DEVNULL,
                                preexec_fn=dies_with_us, **options)

    @contextlib.contextmanager
    def entered(self):
        """Sockets that this thread opens in the block belong to the namespace."""
        with open("/proc/thread-self/ns/net", "rb") as own, open(f"/run/netns/{self.name}", "rb") as its:
            checked(libc.setns(its.fileno(), CLONE_NEWNET))
            try:
                yield
            finally:
                checked(libc.setns(own.fileno(), CLONE_NEWNET))

    def ip(self, *args):
        return self.run("ip", *args)

    def device(self, name, *addresses, mac=None):
        if mac:
            self.ip("link", "set", name, "address", mac)
        self.ip("link", "set", name, "mtu", self.mtu, "up")
        for address in addresses:
            self.ip("address", "add", address, "dev", name)


# Routers drop these of what a kernel sends by itself: router solicitations, and groups that it joins and leaves.
UNASKED = {"nd_router_solicit_ignored", "nd_duplicate_check", "eth_multicast_ignored", "fabric_not_local", "bridge_no_target"}


def wait_for_all_answers(namespace, address, routers, size=1000):
    """Twenty large pings in a row are answered. They are sent again when one was lost, because a queue of the kernel loses
    some while others have the CPUs; but none of the routers may have dropped one in that time."""
    def drops():
        return [{d["reason"]: d["packets"] for d in r.cli("drops") if d["reason"] not in UNASKED} for r in routers]

    def answered():
        done = subprocess.run(ping, capture_output=True, text=True, check=False)
        if " 0% packet loss" in done.stdout:
            return True
        now = drops()
        assert now == before, f"not all of {address}'s answers came, and a router dropped packets: {before} before, {now} now"
        return False

    ping = ["ip", "netns", "exec", namespace.name, "ping", "-c", "20", "-i", "0.02", "-W", "1", "-s", str(size), address]
    before = drops()
    wait(answered, f"20 answers of {address}")


def answers(namespace, address):
    done = subprocess.run(["ip", "netns", "exec", namespace.name, "ping", "-c", "1", "-W", "1", address], capture_output=True, check=False)
    return done.returncode == 0
