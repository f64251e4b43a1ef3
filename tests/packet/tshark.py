# SPDX-License-Identifier: Apache-2.0
"""What tshark reads in frames: an implementation of the protocols that shares nothing with the router, nor with scapy."""
import subprocess

from scapy.utils import wrpcap

ETHERNET, GOOD, ABSENT = 14, "1", "3"  # GOOD, ABSENT: the status of a checksum
BETWEEN = {"vxlan": 8 + 8 + ETHERNET, "geneve": 8 + 8 + ETHERNET, "mplsoudp": 8 + 4, "mplsogre": 4 + 4}  # the two IP packets
CHECKSUMS = ("ip.checksum.status", "udp.checksum.status", "tcp.checksum.status")
FIELDS = ("frame.len", "ip.hdr_len", "ip.len", "ip.id", "ip.flags.df", "ip.dsfield.ecn", "ipv6.plen", "udp.length", "tcp.srcport", "tcp.hdr_len",
          "tcp.len", "tcp.seq_raw", "tcp.flags", *CHECKSUMS, "_ws.malformed")


def read_frames(frames, path):
    wrpcap(str(path), [bytes(f) for f in frames], linktype=1)
    return read(path)


def read(path, condition=""):
    """The frames of a capture that fit, each with the values of its FIELDS, those of the outermost header first."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    for protocol in ("tcp", "udp"):  # what the tests send is no protocol that tshark knows
        command += ["-d", f"{protocol}.port==5000,data"]
    for protocol in ("ip", "udp", "tcp"):
        command += ["-o", f"{protocol}.check_checksum:TRUE"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command + (["-Y", condition] if condition else []), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return [{f: v.split(",") if v else [] for f, v in zip(FIELDS, line.split("\t"))} for line in done.stdout.splitlines()]


def numbers(frame, field):
    return [int(v, 0) for v in frame[field]]


def assert_sound(frame, encap, under, inner):
    """The frame is a packet of TCP or UDP in a tunnel: nothing else is in it, each length is that of what it describes, and each
    checksum is right. Only the outer UDP header may have none. Returns the length of the inner packet."""
    assert not frame["_ws.malformed"], frame
    v4, v6 = numbers(frame, "ip.len"), [n + 40 for n in numbers(frame, "ipv6.plen")]
    assert len(v4) + len(v6) == 2, frame
    outside, inside = (v4 if under == 4 else v6)[0], (v4 if inner == 4 else v6)[-1]
    assert outside == frame_length(frame) - ETHERNET, frame
    assert outside == (20 if under == 4 else 40) + BETWEEN[encap] + inside, frame
    l4 = numbers(frame, "tcp.hdr_len")[0] + numbers(frame, "tcp.len")[0] if frame["tcp.len"] else numbers(frame, "udp.length")[-1]
    assert inside == (20 if inner == 4 else 40) + l4, frame
    assert frame["ip.checksum.status"] == [GOOD] * len(v4), frame
    assert (frame["tcp.checksum.status"] or frame["udp.checksum.status"][-1:]) == [GOOD], frame
    assert set(frame["udp.checksum.status"]) <= {GOOD, ABSENT}, frame
    return inside


def frame_length(frame):
    return numbers(frame, "frame.len")[0]
