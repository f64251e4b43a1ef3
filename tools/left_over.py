#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What test runs that were killed have left on this machine.

left_over.py            names it
left_over.py --clean    ends the processes and removes the rest
left_over.py --at-end   the same, also for the processes of the run that calls it at its end
left_over.py --id PID   prints the id of the run of that process, which all that it starts has in CORELANE_TEST_RUN

A process is left over if its environment has the id of a run that has ended. The rest has the process id of its owner, which has
ended, in its name: network namespaces, cgroups, links, mounts and directories. What others have is left alone, also where
it has the same program or another such name.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

VARIABLE = "CORELANE_TEST_RUN"
PATIENCE = 60  # seconds
# Of tests, by pid of the owner. The lab's tests have one name for all, because labs have names and no owners.
NAMESPACES = re.compile(r"(?:corelane-(?:test|bench)-|corelane-(?:restart|fleet)|cl-intrude-)(\d+)(?:-.*)?|hp(\d+)-(?:fabric|kernel|peer)")
LABS = re.compile(r"cl-selftest-.*")
GROUPS = re.compile(r"corelane-(?:test|intrude)-(\d+)")
LINKS = re.compile(r"cl(\d+)-[01]")
FOLDERS = {"/tmp": re.compile(r"corelane-[a-z]+-(\d+)-\w+"), "/dev/shm": re.compile(r"corelane-[a-z]+-(\d+)-\w+"),
           "/run/dpdk": re.compile(r"(?:flood|noisy)(\d+)")}


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:  # it has ended, or belongs to somebody else
        return b""


def begun(pid):
    """When a process began, in ticks since the machine's start: its number alone may be another one's by now. "": it has ended."""
    fields = read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    return fields[19].decode() if fields and fields[0] not in b"ZX" else ""


def id_of(pid):
    """Numbers of processes are those of a PID namespace: another one's runs are judged there."""
    return f"{os.readlink('/proc/self/ns/pid')}:{pid}:{begun(pid)}"


def runs():
    """The processes of each run of this PID namespace, by its id."""
    found = {}
    for path in glob.glob("/proc/[0-9]*/environ"):
        for variable in read(path).split(b"\0"):
            name, _, run = variable.decode(errors="replace").partition("=")
            if name == VARIABLE and run.startswith(os.readlink("/proc/self/ns/pid") + ":"):
                found.setdefault(run, []).append(int(path.split("/")[2]))
    return found


def ended(run):
    pid = run.split(":")[-2]
    return run != id_of(pid)


def stale(names, pattern):
    """The names that the pattern fits, of which the owner has ended."""
    return [n for n in names if (m := pattern.fullmatch(n)) and not os.path.exists(f"/proc/{m.group(m.lastindex)}")]


def listed(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def ourselves():
    """This process and those that it was started by."""
    pid, chain = os.getpid(), set()
    while pid > 0:
        chain.add(pid)
        fields = read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
        pid = int(fields[1]) if fields else 0
    return chain


def processes(at_end=False):
    """Those of runs that have ended; at the end of a run also its own, without those that wait for this one."""
    own = os.environ.get(VARIABLE) if at_end else None
    return [pid for run, pids in runs().items() if run == own or ended(run) for pid in pids if pid not in ourselves()]


def namespaces():
    names = listed("/run/netns")
    labs = [] if any(not ended(run) for run in runs()) else [n for n in names if LABS.fullmatch(n)]
    return stale(names, NAMESPACES) + labs


def groups(top="/sys/fs/cgroup"):
    paths = glob.glob(f"{top}/corelane-*") + glob.glob(f"{top}/*/corelane-*")
    return [p for p in paths if stale([os.path.basename(p)], GROUPS)]


def folders(places=None):
    return [os.path.join(top, n) for top, pattern in (places or FOLDERS).items() for n in stale(listed(top), pattern)]


def mounts(under, table="/proc/self/mounts"):
    """The mount points in a folder, the inner ones first."""
    points = [line.split()[1].decode("unicode_escape") for line in read(table).splitlines()]
    return [p for p in reversed(points) if p == under or p.startswith(under + "/")]


def thaw(group):
    """A frozen process cannot be killed."""
    for name, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        if os.path.exists(f"{group}/{name}"):
            with open(f"{group}/{name}", "w", encoding="ascii") as f:
                f.write(text)


def end(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    deadline = time.monotonic() + PATIENCE
    while any(begun(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)


def remove_group(group):
    """Threads that are not left over go back to the group above, as the test that put them there would have done."""
    for task in read(f"{group}/tasks").split() or read(f"{group}/cgroup.procs").split():
        above = os.path.dirname(group)
        with open(f"{above}/tasks" if os.path.exists(f"{above}/tasks") else f"{above}/cgroup.procs", "wb") as f:
            f.write(task)
    os.rmdir(group)


def remove_folder(folder):
    for point in mounts(folder):
        subprocess.run(["umount", "--lazy", point], check=True)
    shutil.rmtree(folder)


def attempt(what, remove, *arguments):
    try:
        remove(*arguments)
    except (OSError, subprocess.CalledProcessError) as wrong:
        print(f"left_over: {what} stays: {wrong}", file=sys.stderr)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def clean(found):
    for group in found["cgroup"]:
        attempt(group, thaw, group)
    end(found["process"])
    for kind, remove in (("namespace", lambda n: ip("netns", "del", n)), ("link", lambda n: ip("link", "del", n)), ("cgroup", remove_group),
                         ("folder", remove_folder)):
        for name in found[kind]:
            attempt(name, remove, name)


def left_over(at_end):
    return {"process": processes(at_end), "namespace": namespaces(), "link": stale(listed("/sys/class/net"), LINKS), "cgroup": groups(),
            "folder": folders()}


def main():
    found = left_over("--at-end" in sys.argv)
    for kind, names in found.items():
        for name in names:
            command = read(f"/proc/{name}/cmdline").replace(b"\0", b" ").decode(errors="replace")[:100] if kind == "process" else ""
            print(f"==> left over: {kind} {name} {command}".rstrip())
    if len(sys.argv) > 1:
        clean(found)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--id":
        print(id_of(sys.argv[2]))
    elif sys.argv[1:] in ([], ["--clean"], ["--at-end"]):
        main()
    else:
        sys.exit(__doc__)
