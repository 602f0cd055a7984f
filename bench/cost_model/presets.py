# SPDX-License-Identifier: Apache-2.0
"""The presets of kvarts/scheme.hpp: the kernels that serve them and the bytes that they store."""

from dataclasses import dataclass

HEAD_DIM = 128
BLOCK = 32  # tokens that a warp takes at once
COLUMNS = 8  # queries of a KV head that a warp takes at once
GROUP = 32

_AXES = ("row", "channel", "token")
_LEVELS = ("uniform", "zero", "hybrid", "table")
_BYTES = {"half": 2, "bfloat16": 2, "float": 4}


@dataclass(frozen=True)
class Side:
    """Keys, or values: `bits` a code, parameters shared along `along`, `scale` their type. Plain
    rows have 16 bits and no parameters; `scale` is their type."""

    bits: int
    along: str = "row"
    levels: str = "uniform"
    scale: str = "half"

    @property
    def plain(self):
        return self.bits == 16

    @property
    def kernel_format(self):
        """As the kernel's name has it."""
        if self.plain:
            return f"plain_format<{self.scale}>"
        group = GROUP if self.along == "channel" else 0
        return (f"coded_format<{self.bits}, (axis){_AXES.index(self.along)},"
                f" (levels){_LEVELS.index(self.levels)}, {self.scale}, {group}>")

    @property
    def channel_parts(self):
        """Groups of a token's channels."""
        return HEAD_DIM // GROUP if self.along == "channel" else 1

    @property
    def table_bytes(self):
        """Of shared memory, for the pairs of a codebook's entries."""
        return 4 << 2 * self.bits if self.levels == "table" else 0

    def token_bytes(self):
        """Of a token of one KV head: codes and its share of scales and zero-points."""
        if self.plain:
            return HEAD_DIM * 2
        parameter = _BYTES[self.scale] + 2 * (self.levels in ("zero", "hybrid"))
        return HEAD_DIM * self.bits / 8 + parameter * (1 if self.along == "row"
                                                       else HEAD_DIM / GROUP)


@dataclass(frozen=True)
class Preset:
    """`names` share codecs, as far as kernels can tell; `windows` are tokens in 16 bits."""

    names: tuple
    keys: Side
    values: Side
    windows: int = 0

    @property
    def kernel_names(self):
        """The kernels that may serve it: the type of windows does not matter."""
        return [f"attention_kernel<attention_shape<{self.keys.kernel_format},"
                f" {self.values.kernel_format}, {window}, {HEAD_DIM}, {HEAD_DIM}, {BLOCK},"
                f" {COLUMNS // 8}> >" for window in ("half", "bfloat16")]

    @property
    def token_bytes(self):
        return self.keys.token_bytes() + self.values.token_bytes()


_CHANNEL_3 = Side(3, "channel")
_KIVI = Side(2, "token", "zero"), Side(2, "channel", "zero")


def _midrise(keys, values, windows=128):
    return Preset((f"k{keys}v{values}",), Side(keys), Side(values), windows)


ROWS_16 = Preset(("fp16",), Side(16), Side(16))
PRESETS = (
    ROWS_16,
    Preset(("bf16",), Side(16, scale="bfloat16"), Side(16, scale="bfloat16")),
    Preset(("int8",), Side(8, scale="bfloat16"), Side(8, scale="bfloat16")),
    Preset(("int4",), Side(4, "channel"), Side(4, "token"), 128),
    Preset(("innerq_base", "innerq_base_wide", "innerq_base_searched"), _CHANNEL_3,
           Side(3, "token"), 128),
    Preset(("innerq_hybrid", "innerq_hybrid_wide"), _CHANNEL_3, Side(2, "token", "hybrid"), 128),
    Preset(("innerq_small", "innerq_small_wide", "innerq_small_searched"), _CHANNEL_3,
           Side(2, "token"), 128),
    Preset(("kivi", "kivi_sink"), *_KIVI, 128),
    Preset(("turboquant",), Side(4, levels="table", scale="float"),
           Side(3, levels="table", scale="float"), 128),
    Preset(("turboquant_calibrated",), Side(4, levels="table"), Side(3, levels="table"), 128),
    _midrise(8, 8, 0),
    *(_midrise(*bits) for bits in ((4, 4), (4, 3), (4, 2), (3, 3), (3, 2), (2, 2))),
)
