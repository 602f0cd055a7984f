# SPDX-License-Identifier: Apache-2.0
"""SGLang's host pool on a kvarts tier: the three calls that its cache controller makes.

With torch, tables of addresses are tensors' data_ptr(), and indices are int64 tensors on the host.
"""

import ctypes
import random
import struct
import sys

import kvarts_c


class DevicePool:
    """K and V of the device, `[tokens, heads, head_dim]` a layer, as ctypes arrays."""

    def __init__(self, k_buffer, v_buffer, tokens):
        self.k_buffer, self.v_buffer, self.tokens = k_buffer, v_buffer, tokens


class HostPool:
    """Encoded tokens in this process's memory."""

    def __init__(self, tier, tokens):
        self.tier = tier
        self.memory = [(ctypes.c_char * tier.call("host_bytes", side, tokens))() for side in (0, 1)]
        self.pool = kvarts_c.HostPool(*map(ctypes.addressof, self.memory), tokens)

    def get_size_per_token(self):
        return self.tier.call("get_size_per_token")

    def backup_from_device_all_layer(self, device_pool, host_indices, device_indices):
        self.tier.call("backup_from_device_all_layer", ctypes.byref(self.pool),
                       kvarts_c.addresses(device_pool.k_buffer),
                       kvarts_c.addresses(device_pool.v_buffer), device_pool.tokens,
                       kvarts_c.indices(host_indices), kvarts_c.indices(device_indices),
                       len(host_indices))

    def load_to_device_per_layer(self, device_pool, host_indices, device_indices, layer_id):
        self.tier.call("load_to_device_per_layer", ctypes.byref(self.pool), layer_id,
                       ctypes.addressof(device_pool.k_buffer[layer_id]),
                       ctypes.addressof(device_pool.v_buffer[layer_id]), device_pool.tokens,
                       kvarts_c.indices(host_indices), kvarts_c.indices(device_indices),
                       len(host_indices))


def main(library):
    layers, heads, head_dim, tokens, moved = 4, 8, 128, 64, 24
    random.seed(7)
    row = heads * head_dim
    plain = [[[random.gauss(0, 1) for _ in range(tokens * row)] for _ in range(layers)]
             for _ in ("keys", "values")]
    device = [[(ctypes.c_char * (2 * tokens * row)).from_buffer_copy(
        struct.pack(f"<{tokens * row}e", *numbers)) for numbers in side] for side in plain]

    tier = kvarts_c.Tier(library, "int8", layers, heads, head_dim, layout="page_first",
                         source="fp16")
    pool, device_pool = HostPool(tier, 100), DevicePool(*device, tokens)
    slots = random.sample(range(tokens), moved)
    places = random.sample(range(100), moved)
    pool.backup_from_device_all_layer(device_pool, places, slots)
    for side in device:
        for array in side:
            ctypes.memset(array, 0xFF, len(array))  # the device evicted everything
    for layer in range(layers):
        pool.load_to_device_per_layer(device_pool, places, slots, layer)

    restored, worst = 0, 0.0
    for side, numbers in zip(device, plain):
        for array, before in zip(side, numbers):
            after = struct.unpack(f"<{tokens * row}e", array.raw)
            for token in slots:
                for head in range(heads):
                    begin = token * row + head * head_dim
                    x, y = before[begin:begin + head_dim], after[begin:begin + head_dim]
                    worst = max(worst, max(abs(a - b) for a, b in zip(x, y)) / max(map(abs, x)))
                    restored += head_dim
    print(f"{pool.get_size_per_token()} bytes a token for {4 * row * layers} of 16 bits; "
          f"{restored} numbers restored, off by at most {worst:.4f} of a row's largest")
    # Half a step of 1/127, and the rounding of the scale to bf16 and of numbers to fp16.
    return 0 if restored == 2 * layers * moved * row and worst < 0.0065 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
