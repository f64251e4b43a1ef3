# SPDX-License-Identifier: Apache-2.0
"""A vhost-user guest that posts any descriptor: only the protocol's front end, one transmit ring, and one receive ring whose buffers
frames may share."""
import array
import mmap
import os
import select
import socket
import struct

SET_FEATURES, GET_FEATURES, SET_OWNER, SET_MEM_TABLE = 2, 1, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL, SET_VRING_ENABLE = 8, 9, 10, 12, 13, 18
FEATURES = 1 << 32 | 1 << 30  # VERSION_1, PROTOCOL_FEATURES
OFFLOADS = 1 << 0 | 1 << 11 | 1 << 12  # CSUM, HOST_TSO4, HOST_TSO6: it may leave checksums and segmentation to the router
MERGEABLE = 1 << 15  # a frame may take several buffers
WRITABLE = 2  # by the router
HEADER = 12  # struct virtio_net_hdr_mrg_rxbuf
SLOTS = 256
RING_BYTES = 1 << 14  # of each ring: descriptors at 0, available at 8192, used at 12288
DATA = 2 * RING_BYTES


class Guest:
    def __init__(self, path, frame, described=None, space=1 << 17, buffer=0, header=b"", features=0):
        """All slots of the transmit ring hold the frame behind its virtio-net header; their descriptors state `described` bytes. The
        receive ring has buffers of `buffer` bytes, behind `space`. `features` are taken besides those that every guest here takes."""
        self.buffer, self.buffers, self.features = buffer, DATA + space, features
        space += SLOTS * buffer
        self.fd = os.memfd_create("guest")
        os.ftruncate(self.fd, DATA + space)
        self.memory = mmap.mmap(self.fd, DATA + space)
        self.sent = 0
        self.memory[DATA:DATA + len(header)] = header
        self.memory[DATA + HEADER:DATA + HEADER + len(frame)] = frame
        for slot in range(SLOTS):
            struct.pack_into("<QIHH", self.memory, RING_BYTES + slot * 16, DATA, HEADER + (described or len(frame)), 0, 0)
            struct.pack_into("<H", self.memory, RING_BYTES + 8192 + 4 + slot * 2, slot)
        for slot in range(SLOTS if buffer else 0):
            struct.pack_into("<QIHH", self.memory, slot * 16, self.buffers + slot * buffer, buffer, WRITABLE, 0)
            struct.pack_into("<H", self.memory, 8192 + 4 + slot * 2, slot)
        struct.pack_into("<H", self.memory, 8192 + 2, SLOTS if buffer else 0)
        self.taken = 0  # entries of the receive ring that were read
        self.arrival = os.eventfd(0, os.EFD_NONBLOCK)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.handshake(DATA + space)

    def tell(self, request, payload=b"", fd=None):
        message = struct.pack("<III", request, 1, len(payload)) + payload
        rights = [] if fd is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        self.sock.sendmsg([message], rights)

    def handshake(self, size):
        self.tell(SET_OWNER)
        self.tell(GET_FEATURES)
        self.sock.recv(20, socket.MSG_WAITALL)
        self.tell(SET_FEATURES, struct.pack("<Q", FEATURES | self.features | (MERGEABLE if self.buffer else 0)))
        self.tell(SET_MEM_TABLE, struct.pack("<IIQQQQ", 1, 0, 0, size, 0, 0), self.fd)  # guest addresses begin at 0
        for ring in range(2):
            base = ring * RING_BYTES
            self.tell(SET_VRING_NUM, struct.pack("<II", ring, SLOTS))
            self.tell(SET_VRING_BASE, struct.pack("<II", ring, 0))
            self.tell(SET_VRING_ADDR, struct.pack("<IIQQQQ", ring, 0, base, base + 12288, base + 8192, 0))
            for request in (SET_VRING_CALL, SET_VRING_KICK):
                if (ring, request) == (0, SET_VRING_CALL):
                    self.tell(request, struct.pack("<Q", ring), self.arrival)
                    continue
                event = os.eventfd(0)
                self.tell(request, struct.pack("<Q", ring), event)
                os.close(event)
        for ring in range(2):
            self.tell(SET_VRING_ENABLE, struct.pack("<II", ring, 1))

    def post(self):
        """Fills the ring. Returns how many frames the router has taken in all."""
        used = struct.unpack_from("<H", self.memory, RING_BYTES + 12288 + 2)[0]
        self.sent += (used - self.sent) & 0xffff
        struct.pack_into("<H", self.memory, RING_BYTES + 8192 + 2, (self.sent + SLOTS) & 0xffff)
        return self.sent

    def receive(self, seconds=10):
        """Returns the next frame and how many buffers it took. Its buffers are offered again."""
        while struct.unpack_from("<H", self.memory, 12288 + 2)[0] == self.taken & 0xffff:
            if not select.select([self.arrival], [], [], seconds)[0]:
                raise TimeoutError("no frame came")
            os.read(self.arrival, 8)
        frame, first, count = b"", self.taken, 1
        while self.taken < first + count:
            slot, length = struct.unpack_from("<II", self.memory, 12288 + 4 + self.taken % SLOTS * 8)
            at = self.buffers + slot * self.buffer
            if self.taken == first:
                count = struct.unpack_from("<H", self.memory, at + HEADER - 2)[0]
            frame += self.memory[at:at + length]
            struct.pack_into("<H", self.memory, 8192 + 4 + self.taken % SLOTS * 2, slot)
            self.taken += 1
        struct.pack_into("<H", self.memory, 8192 + 2, (self.taken + SLOTS) & 0xffff)
        return frame[HEADER:], count

    def close(self):
        self.sock.close()
        self.memory.close()
        os.close(self.fd)
        os.close(self.arrival)
