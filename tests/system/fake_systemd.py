# SPDX-License-Identifier: Apache-2.0
"""A system bus on which systemd says which job it runs for the unit of whoever asks."""
import socket
import struct
import threading

PATH = b"/org/freedesktop/systemd1/of_the_test"
METHOD_CALL, METHOD_RETURN = 1, 2
REPLY_SERIAL, SIGNATURE = 5, 8


def text(value):
    return struct.pack("<I", len(value)) + value + b"\0"


def aligned(data, size):
    return data + bytes(-len(data) % size)


def message(serial, call, signature, body):
    """A method return, in little endian."""
    fields = struct.pack("<BBBBI", REPLY_SERIAL, 1, ord("u"), 0, call)
    fields += struct.pack("<BBBBB", SIGNATURE, 1, ord("g"), 0, len(signature)) + signature + b"\0"
    head = struct.pack("<BBBBIII", ord("l"), METHOD_RETURN, 0, 1, len(body), serial, len(fields))
    return aligned(head + fields, 8) + body


class FakeSystemd:
    def __init__(self, path, job):
        self.job = job.encode()
        self.address = f"unix:path={path}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self.thread.join()
        self.listener.close()

    def serve(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer, peer.makefile("rwb", buffering=0) as stream:
                self.authenticate(stream)
                self.answer(stream)

    @staticmethod
    def authenticate(stream):
        while (line := stream.readline().strip()) != b"BEGIN":
            if line.lstrip(b"\0").startswith(b"AUTH"):
                stream.write(b"DATA\r\n")
            elif line == b"DATA":
                stream.write(b"OK " + b"0" * 32 + b"\r\n")
            elif line == b"NEGOTIATE_UNIX_FD":
                stream.write(b"ERROR\r\n")

    def answer(self, stream):
        serial = 0
        while len(head := stream.read(16)) == 16:
            kind, body_size, call, fields_size = struct.unpack("<xBxxIII", head)
            rest = -(16 + fields_size) % 8 + fields_size + body_size
            asked = b""
            while len(asked) < rest:
                asked += stream.read(rest - len(asked))
            serial += 1
            if kind == METHOD_CALL:
                stream.write(message(serial, call, *self.result(asked)))

    def result(self, asked):
        if b"Hello\0" in asked:
            return b"s", text(b":1.1")
        if b"GetUnitByPID\0" in asked:
            return b"o", text(PATH)
        if b"JobType\0" in asked:
            return b"v", aligned(b"\1s\0", 4) + text(self.job)
        return b"v", aligned(b"\4(uo)\0", 8) + struct.pack("<I", 7 if self.job else 0) + text(PATH)
