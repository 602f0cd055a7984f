# SPDX-License-Identifier: Apache-2.0
"""LMCache's serializer and deserializer on kvarts page files.

A chunk is `[2, layers, tokens, heads, head_dim]`, K before V; its bytes are two page files. With
LMCache, buffers are the tensors of memory objects, and keys the digests of object keys.
"""

import collections
import ctypes
import hashlib
import random
import struct
import sys

import kvarts_c


class KvartsSerde:
    """The three calls of the serde; buffers are ctypes arrays."""

    def __init__(self, tier):
        self.tier = tier

    def tokens_of(self, chunk):
        return ctypes.sizeof(chunk) // (2 * self.tier.layers * self.tier.row_bytes)

    def estimate_serialized_size(self, layout_desc):
        """Exact, since page files have a fixed size; shapes are those of chunks."""
        return self.tier.call("estimate_serialized_size", layout_desc.shapes[0][2])

    def serialize(self, src, dst, key):
        return self.tier.call("serialize", ctypes.addressof(src), self.tokens_of(src),
                              ctypes.addressof(dst), ctypes.sizeof(dst), digest_of(key))

    def deserialize(self, src, dst, key):
        self.tier.call("deserialize", ctypes.addressof(src), ctypes.sizeof(src),
                       ctypes.addressof(dst), self.tokens_of(dst), digest_of(key))


Layout = collections.namedtuple("Layout", "shapes")


def digest_of(key):
    return hashlib.sha256(key.encode()).digest()


def buffer(size):
    return (ctypes.c_char * size)()


def refused(call):
    try:
        call()
    except kvarts_c.Error as error:
        print("refused:", error)
        return True
    return False


def main(library):
    layers, heads, head_dim, tokens = 2, 2, 64, 48
    random.seed(7)
    count = 2 * layers * tokens * heads * head_dim
    numbers = [random.gauss(0, 1) for _ in range(count)]
    chunk = (ctypes.c_char * (2 * count)).from_buffer_copy(struct.pack(f"<{count}e", *numbers))
    ones = (ctypes.c_float * (layers * heads * head_dim))(*[1.0] * layers * heads * head_dim)
    zeros = (ctypes.c_float * len(ones))()

    tier = kvarts_c.Tier(library, "k8v8", layers, heads, head_dim, alignment=16, source="fp16",
                         model="example", center=zeros, norm=ones)
    serde = KvartsSerde(tier)
    layout = Layout([(2, layers, tokens, heads, head_dim)])
    stored = buffer(serde.estimate_serialized_size(layout))
    used = serde.serialize(chunk, stored, "tokens 0..47")
    back = buffer(len(chunk))
    damaged = buffer(used)
    ctypes.memmove(damaged, stored, used)
    damaged[used - 1] = bytes([damaged[used - 1][0] ^ 1])
    fine = (refused(lambda: serde.deserialize(damaged, back, "tokens 0..47"))
            and refused(lambda: serde.deserialize(stored, back, "tokens 48..95"))
            and back.raw == bytes(len(chunk)))
    serde.deserialize(stored, back, "tokens 0..47")
    after = struct.unpack(f"<{count}e", back.raw)
    error = (sum((a - b) ** 2 for a, b in zip(numbers, after)) / sum(a * a for a in numbers)) ** .5
    print(f"{used} bytes for {len(chunk)}; {count} numbers restored, relative error {error:.4f}")
    return 0 if fine and used == len(stored) and error < 0.02 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
