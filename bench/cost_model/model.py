# SPDX-License-Identifier: Apache-2.0
"""Microseconds of decode attention of one layer, from instructions and bytes.

    time = max(issue, tensor, memory) + latency

    issue   = blocks of the busiest scheduler * warp instructions of a block * stall / clock
    tensor  = blocks of the busiest scheduler * HMMA of a block * clocks of one / clock
    memory  = bytes / min(bandwidth of a copy, multiprocessors * bytes in flight / loaded latency)
    latency = gap between kernels + prologue and merge + dependent reads of memory

A block is 32 tokens of one KV head; its counts are those of the straight way around the kernel's
main loop, so of whole blocks without soft cap, sliding window, tree mask or rescaling, found
without block tables. Tokens in 16-bit windows cost what those of the fp16 preset cost. One query
token: GQA 4 fills four of the eight columns of a warp, and eight would cost the same. All bytes
come from DRAM, all multiprocessors have equal work, issue slots are never lost but to `stall`, and
spilled registers cost nothing. So a GPU should be slower, not faster.
"""

import math
from dataclasses import dataclass

import parts
from presets import BLOCK, COLUMNS, HEAD_DIM

KV_HEADS = 8
QUERY_HEADS = 32

WARPS = 4  # of a thread block: attention_warps
LAUNCHED = 4  # most thread blocks of a multiprocessor: attention_blocks

# Of shared memory, as attention_shared has it for a thread block: four planes of floats, sums that
# scores start from for each warp and group of a key's channels, and the rest.
PLANE_BYTES = 4 * COLUMNS * HEAD_DIM * 4
START_BYTES = WARPS * 64
OTHER_BYTES = 2048

# Bytes that a warp has in flight for plain rows: 16 rows of K, or of V.
ROWS_IN_FLIGHT = 16 * HEAD_DIM * 2

# 26 KB in flight for each of 132 multiprocessors give 4.3 TB/s. Assumed of the other parts too.
LOADED_LATENCY_US = 0.8

# Clocks between dependent instructions are 4 (Jia et al., "Dissecting the NVIDIA Volta GPU
# Architecture via Microbenchmarking", arXiv:1804.06826); decoding has two or more independent
# chains, so a warp issues every other clock and two warps fill a scheduler. Assumed.
CLOCKS_BETWEEN = 2

# A kernel of 2.9 us takes 3.4 us in a graph ("Getting Started with CUDA Graphs", NVIDIA developer
# blog, 2019).
GAP_US = 0.5
# Lengths, block table, queries, first codes; then part, counter, other parts, output.
DEPENDENT_ACCESSES = 8
ACCESS_CLOCKS = 480  # A100 466, H100 479 (Luo et al., arXiv:2402.13499)
# Folding the queries, summing up warps, rotating the output back. Assumed.
PROLOGUE_CLOCKS = 4000


@dataclass(frozen=True)
class Cost:
    """Of 32 tokens of one KV head: warp instructions, those of tensor cores among them, bytes."""

    instructions: float
    mma: float
    bytes: float


@dataclass(frozen=True)
class Occupancy:
    """Thread blocks of a multiprocessor and the bytes that they have in flight."""

    blocks: int
    bytes_in_flight: float


@dataclass(frozen=True)
class Prediction:
    """Microseconds."""

    issue: float
    tensor: float
    memory: float
    latency: float

    @property
    def total(self):
        return max(self.issue, self.tensor, self.memory) + self.latency

    @property
    def limit(self):
        """What takes most of the time."""
        return max(("memory", "issue", "tensor", "latency"), key=lambda x: getattr(self, x))


def cost(preset, kernel):
    """`kernel` has the fields that cmake/sass counts."""
    per_block = BLOCK / kernel["tokens_per_iteration"]
    return Cost(kernel["loop_instructions"] * per_block, kernel["mma"] * per_block,
                BLOCK * preset.token_bytes)


def stage_bytes(preset):
    """A stage of the ring of a warp, as kvarts/kernels/attention_ring.cuh has it: a block of the
    sides that are coded."""
    staged = [side.token_bytes() for side in (preset.keys, preset.values) if not side.plain]
    return math.ceil(BLOCK * sum(staged) / 128) * 128


def shared_bytes(preset, stages):
    """Of a thread block whose warps have so many stages."""
    state = PLANE_BYTES + START_BYTES * preset.keys.channel_parts + OTHER_BYTES
    tables = preset.keys.table_bytes + preset.values.table_bytes
    return state + tables + WARPS * stages * stage_bytes(preset)


def stages(preset):
    """The rule of kvarts/kernels/attention_ring.cuh."""
    if shared_bytes(preset, 3) <= 40 * 1024:
        return 3
    return 2 if shared_bytes(preset, 2) <= 96 * 1024 else 1


def occupancy(part, preset, kernel):
    ring = stages(preset)
    shared = shared_bytes(preset, ring) + parts.RESERVED_SHARED_BYTES
    registers = math.ceil(kernel["registers"] / 8) * 8 * 32 * WARPS
    blocks = min(LAUNCHED, parts.REGISTERS // registers, part.shared_bytes // shared)
    staged = stage_bytes(preset) * max(1, ring - 1)
    return Occupancy(blocks, blocks * WARPS * (staged or ROWS_IN_FLIGHT))


def bandwidth(part, resident):
    """GB/s that the part reaches with these thread blocks."""
    reachable = part.multiprocessors * resident.bytes_in_flight / LOADED_LATENCY_US / 1000
    return min(part.gb_per_s, reachable)


def latency(part):
    clocks = DEPENDENT_ACCESSES * ACCESS_CLOCKS + PROLOGUE_CLOCKS
    return GAP_US + clocks / part.clock_ghz / 1000


def predict(part, coded, rows, resident, windows, tokens, batch):
    """Of `batch` sequences of `tokens` tokens: `windows` of them as 16-bit `rows`, the others
    `coded`; both are a Cost."""
    blocks_coded = batch * KV_HEADS * (tokens - min(windows, tokens)) / BLOCK
    blocks_rows = batch * KV_HEADS * min(windows, tokens) / BLOCK
    blocks = blocks_coded + blocks_rows
    busiest = math.ceil(blocks / part.schedulers)

    def clocks_of(each):
        mean = (blocks_coded * each(coded) + blocks_rows * each(rows)) / blocks
        return busiest * mean

    warps = min(busiest, resident.blocks * WARPS // parts.SCHEDULERS)
    stall = max(1, CLOCKS_BETWEEN / warps)
    clocks_per_us = part.clock_ghz * 1000
    size = blocks_coded * coded.bytes + blocks_rows * rows.bytes
    return Prediction(
        issue=clocks_of(lambda x: x.instructions) * stall / clocks_per_us,
        tensor=clocks_of(lambda x: x.mma) * part.mma_clocks / clocks_per_us,
        memory=size / bandwidth(part, resident) / 1000,
        latency=latency(part))
