# SPDX-License-Identifier: Apache-2.0
"""The C entry points of a host tier (c_api.h) through ctypes; Python's standard library alone."""

import ctypes

LAYOUTS = ("layer_first", "page_first", "page_first_direct", "page_head")
SOURCES = ("fp16", "bf16", "fp32")
ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}

I32, I64, PTR, TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p


class Options(ctypes.Structure):
    _fields_ = [("preset", TEXT), ("model", TEXT), ("layers", I32), ("heads", I32),
                ("head_dim", I32), ("page_tokens", I32), ("alignment", I32), ("layout", I32),
                ("source", I32), ("threads", I32), ("center", PTR), ("norm", PTR)]


class HostPool(ctypes.Structure):
    _fields_ = [("keys", PTR), ("values", PTR), ("tokens", I64)]


class Error(RuntimeError):
    """What the library says of bad input."""


SIGNATURES = {
    "kvarts_last_error": (TEXT, []),
    "kvarts_tier_create": (PTR, [ctypes.POINTER(Options)]),
    "kvarts_tier_destroy": (None, [PTR]),
    "kvarts_host_bytes": (I64, [PTR, I32, I64]),
    "kvarts_get_size_per_token": (I64, [PTR]),
    "kvarts_backup_from_device_all_layer":
        (I32, [PTR, ctypes.POINTER(HostPool), PTR, PTR, I64, PTR, PTR, I64]),
    "kvarts_load_to_device_per_layer":
        (I32, [PTR, ctypes.POINTER(HostPool), I32, PTR, PTR, I64, PTR, PTR, I64]),
    "kvarts_estimate_serialized_size": (I64, [PTR, I64]),
    "kvarts_serialize": (I64, [PTR, PTR, I64, PTR, I64, TEXT]),
    "kvarts_deserialize": (I32, [PTR, PTR, I64, PTR, I64, TEXT]),
}


def addresses(arrays):
    """A table of addresses, one a layer."""
    return (ctypes.c_uint64 * len(arrays))(*[ctypes.addressof(a) for a in arrays])


def indices(numbers):
    return (I64 * len(numbers))(*numbers)


class Tier:
    """A host tier; `center` and `norm` are ctypes float arrays or None."""

    def __init__(self, library, preset, layers, heads, head_dim, page_tokens=1, alignment=128,
                 layout="layer_first", source="bf16", threads=1, model="", center=None, norm=None):
        self.library = ctypes.CDLL(library)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        self.layers, self.row_bytes = layers, heads * head_dim * ELEMENT_BYTES[source]
        options = Options(preset.encode(), model.encode(), layers, heads, head_dim, page_tokens,
                          alignment, LAYOUTS.index(layout), SOURCES.index(source), threads,
                          ctypes.cast(center, PTR), ctypes.cast(norm, PTR))
        self.handle = self.library.kvarts_tier_create(ctypes.byref(options))
        if not self.handle:
            raise Error(self.library.kvarts_last_error().decode())

    def call(self, name, *arguments):
        """Calls kvarts_NAME; raises what went wrong."""
        result = getattr(self.library, "kvarts_" + name)(self.handle, *arguments)
        if result < 0:
            raise Error(self.library.kvarts_last_error().decode())
        return result

    def close(self):
        if self.handle:
            self.library.kvarts_tier_destroy(self.handle)
            self.handle = None
