# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of a kernel's main loop and derives its cost per code and per token."""

from collections import Counter

from loops import Graph

LANES = 32
TILE = 32  # tokens

_COUNTED = {  # field -> first words of the instructions that it counts
    "lop3": {"LOP3"},
    "shf": {"SHF"},
    "prmt": {"PRMT"},
    "iadd": {"IADD3", "VIADD", "IADD"},
    "imad": {"IMAD"},
    "mma": {"HMMA", "IMMA"},
    "shfl": {"SHFL"},
    "i2f": {"I2F", "I2FP"},
    "f2i": {"F2I"},
    "f2f": {"F2F"},
    "f2fp": {"F2FP"},
    "movm": {"MOVM"},
    "mufu": {"MUFU"},
    "barriers": {"BAR"},
}
_WIDTHS = {"128": 128, "64": 64, "U16": 16, "S16": 16, "U8": 8, "S8": 8}
_LOADS = {"global_loads": "LDG", "async_copies": "LDGSTS", "shared_loads": "LDS"}
_READS_CODES = {"gemv_qk", "gemv_pv", "decode", "repack"}


def width(instruction):
    """Bits that a load brings to each lane."""
    return next((_WIDTHS[m] for m in instruction.modifiers if m in _WIDTHS), 32)


def is_global_load(instruction):
    return instruction.base in ("LDG", "LDGSTS") and not instruction.never_runs


def is_mma(instruction):
    return instruction.base in _COUNTED["mma"]


def is_copy(instruction):
    """Whether it copies from global to shared memory: 16 bytes a lane, or in bulk."""
    return instruction.base in ("LDGSTS", "UBLKCP") and not instruction.never_runs


def code_loads(code):
    """The loads of codes. Those marked to leave the caches soon (NA: no-allocate, EF: evict-first)
    where any are: a kernel marks the loads of codes and of nothing else. Where none is, all that
    are 128 bits wide. A bulk copy does not show its size, so with one the 128-bit reads of shared
    memory count."""
    loads = [x for x in code if is_global_load(x)]
    marked = [x for x in loads if {"NA", "EF"} & set(x.modifiers)]
    if any(x.base == "UBLKCP" for x in code):
        marked, loads = [], [x for x in code if x.base == "LDS" and not x.never_runs]
    return marked or [x for x in loads if width(x) == 128]


def count(code):
    """Every counted field of a list of instructions."""
    running = [x for x in code if not x.never_runs]
    bases = Counter(x.base for x in running)
    fields = {field: sum(bases[b] for b in names) for field, names in _COUNTED.items()}
    fields["integer_ops"] = fields["lop3"] + fields["shf"] + fields["prmt"]
    fields["calls"] = sum(x.calls for x in running)
    # A division is a reciprocal, a few products and a call for the awkward cases.
    fields["rcp"] = sum(x.op.startswith("MUFU.RCP") for x in running)
    fields["ex2"] = sum(x.op.startswith("MUFU.EX2") for x in running)
    for field, base in _LOADS.items():
        widths = Counter(width(x) for x in running if x.base == base)
        fields[field] = {str(bits): widths[bits] for bits in sorted(widths, reverse=True)}
    return fields


class MainLoop:
    """`code` is the straight path of a loop, `everything` has the rarely taken branches too.
    `inner_loops` counts the loops on the path, whose instructions `code` has only once; those that
    wait for a barrier or choose the lane that starts a copy go around once."""

    def __init__(self, graph, loop, every):
        self.everything = [x for b in sorted(loop.blocks) for x in graph.blocks[b]]
        path = graph.straight_path(loop, _worth)
        self.code = [x for b in path for x in graph.blocks[b]]
        inner = [a for a in every if a.blocks < loop.blocks and a.header in path]
        self.inner_loops = sum(not any(x.base in ("SYNCS", "UBLKCP") for b in a.blocks
                                       for x in graph.blocks[b]) for a in inner)

    def rank(self):
        """Decoding beats reading: a loop over 16-bit tokens reads more and decodes nothing.
        Attention has a loop for each way in which keys and values are stored: codes are copied to
        shared memory, or looked up in block tables, whose numbers have 32 bits; other 16-bit rows
        come straight to registers."""
        reads = sum(map(width, code_loads(self.code))), len(self.code)
        if not any(map(is_mma, self.code)):
            return False, 0, 0, 0, 0, *reads
        copies = sum(map(is_copy, self.code))
        rows = sum(x.base == "LDG" and width(x) >= 64 for x in self.code) if copies else 0
        tables = sum(x.base in ("LDG", "LD") and width(x) == 32 for x in self.everything)
        return bool(copies), -rows, copies, tables, count(self.code)["integer_ops"], *reads


def _is_work(instruction):
    reads = is_global_load(instruction) and width(instruction) >= 64
    return reads or is_mma(instruction) or instruction.base == "UBLKCP"


def _worth(code):
    """What makes a block of a loop part of the common way around it: decoding most of all (16-bit
    tokens in the same loop are another way), then other work of the loop, which is not rare where
    a branch can skip it, as the load for the next round; else the shortest way is the common."""
    counted = count(code)
    decodes = 0 < counted["mma"] <= counted["integer_ops"]
    bulk = any(x.base == "UBLKCP" for x in code)
    return int(decodes), any(map(_is_work, code)) + bulk, -len(code)


def main_loop(function):
    """The MainLoop of a Function, or None: among the innermost loops that hold tensor core
    instructions (where there are none wide global loads, where there are none of those anything)
    the one that decodes most, then the one that reads most."""
    graph = Graph(function)
    every = graph.loops()
    code_of = {loop.header: [x for b in loop.blocks for x in graph.blocks[b]] for loop in every}
    for wanted in (is_mma, _is_work, lambda x: True):
        holding = [a for a in every if any(map(wanted, code_of[a.header]))]
        innermost = [a for a in holding if not any(b.blocks < a.blocks for b in holding)]
        if innermost:
            return max((MainLoop(graph, loop, every) for loop in innermost), key=MainLoop.rank)
    return None


def lane_bytes(bits, codes):
    """Bytes that a lane's codes take: whole words."""
    return 4 * -(-codes * bits // 32)


def fields(function, named):
    """The fields of a kernel that its code gives, most of them counted in the main loop, so zero
    where there is none. Those per code and per token are None where the loop loads no codes or
    `named`, the fields that its name gives, has no bits or no head_dim."""
    main = main_loop(function)
    code = main.code if main else []
    result = {
        "local_accesses": sum(x.base in ("LDL", "STL") for x in function.instructions),
        "loop_instructions": len(code),
        "rare_instructions": len(main.everything) - len(code) if main else 0,
        "rare_mma": sum(map(is_mma, main.everything)) - sum(map(is_mma, code)) if main else 0,
    }
    result["inner_loops"] = main.inner_loops if main else 0
    result |= count(code)
    blank = dict.fromkeys(("codes_per_iteration", "tokens_per_iteration", "integer_ops_per_code",
                           "instructions_per_token", "movm_per_tile", "f2fp_per_tile",
                           "narrow_code_bytes"))
    read = _read_by_attention if named["kind"] == "attention" else _read_by_loads
    return result | (blank | _per_code(result, named, *read(code, named)) if main else blank)


def _read_by_loads(code, named):
    """(tokens, codes, bytes of codes in narrow loads beyond the tails) of once around a loop whose
    loads bring codes to registers; zeros where it loads none or they are not known."""
    loads = code_loads(code)
    planes = [named[key] for key in ("k_bits", "v_bits") if key in named]
    head_dim = named.get("head_dim")
    if named["kind"] not in _READS_CODES or not (loads and planes and head_dim):
        return 0, 0, 0
    block = named.get("tile", TILE)
    parts = [lane_bytes(bits, block * head_dim // LANES) for bits in planes]
    tokens = block * sum(map(width, loads)) / 8 / sum(parts)
    tail = sum(part % 16 for part in parts)
    narrow = sum(width(x) // 8 for x in loads if width(x) < 128)
    return tokens, tokens * head_dim * len(planes), max(0, narrow - tail * tokens / block)


def _read_by_attention(code, named):
    """The same for attention, whose weights are one exponential for each token and column, and
    whose codes come through shared memory or, of 16 bits, do not."""
    running = [x for x in code if not x.never_runs]
    tokens = count(running)["ex2"] * LANES / named["gqa"]
    sides = (named["k_bits"], named["head_dim"]), (named["v_bits"], named["value_dim"])
    parts = [lane_bytes(bits, named["tile"] * dim // LANES) for bits, dim in sides]
    wide = 16 * sum(x.base in ("LDS", "LDG", "LD") and width(x) == 128 for x in running)
    whole = sum(part // 16 * 16 for part in parts) * tokens / named["tile"]
    copies = sum(width(x) // 8 for x in running if x.base == "LDGSTS" and width(x) < 128)
    return tokens, tokens * sum(dim for _, dim in sides), max(0, whole - wide) + copies


def _per_code(counted, named, tokens, codes, narrow):
    if not tokens:
        return {}
    heads = tokens / TILE * -(-named.get("gqa", 1) // 8)
    return {
        "codes_per_iteration": codes,
        "tokens_per_iteration": tokens,
        "integer_ops_per_code": counted["integer_ops"] * LANES / codes,
        "instructions_per_token": counted["loop_instructions"] / tokens,
        "movm_per_tile": counted["movm"] / heads,
        "f2fp_per_tile": counted["f2fp"] / heads,
        "narrow_code_bytes": narrow,
    }
