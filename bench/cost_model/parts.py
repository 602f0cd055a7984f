# SPDX-License-Identifier: Apache-2.0
"""The parts that are predicted: what limits them, and where each number is from."""

from dataclasses import dataclass

# A copy kernel reads and writes about 4.3 of the 4.8 TB/s of an H200's data sheet. Assumed of the
# other parts too.
BANDWIDTH_FRACTION = 4.3 / 4.8

SCHEDULERS = 4  # of a multiprocessor: each issues one warp instruction a clock (CUDA C++
# programming guide, "Compute Capabilities" 8.x, 9.0 and 12.x)
REGISTERS = 65536  # of a multiprocessor (same tables), handed out to warps in units of 8 a thread
RESERVED_SHARED_BYTES = 1024  # of shared memory for each thread block (same tables)

# Products of two numbers that a tensor core instruction m16n8k16 sums up.
MMA_PRODUCTS = 16 * 8 * 16


@dataclass(frozen=True)
class Part:
    """`mma_clocks` is how long a tensor core, one beside each scheduler, takes for an m16n8k16 of
    halfs into floats; `shared_bytes` are those of a multiprocessor."""

    name: str
    arch: str
    multiprocessors: int
    clock_ghz: float
    peak_gb_per_s: float
    mma_clocks: float
    shared_bytes: int

    @property
    def schedulers(self):
        return SCHEDULERS * self.multiprocessors

    @property
    def gb_per_s(self):
        """The bandwidth that a copy reaches."""
        return self.peak_gb_per_s * BANDWIDTH_FRACTION


PARTS = (
    # NVIDIA A100 Tensor Core GPU Architecture (white paper): 108 SMs, boost 1.41 GHz, 256 products
    # a clock and tensor core; data sheet of the 80 GB SXM part: 2039 GB/s.
    Part("A100 80 GB", "sm_80", 108, 1.41, 2039, MMA_PRODUCTS / 256, 164 * 1024),
    # NVIDIA H100 Tensor Core GPU Architecture (white paper): 132 SMs, 512 products a clock and
    # tensor core, of which mma.sync reaches about 63% (Luo et al., "Benchmarking and Dissecting the
    # Nvidia Hopper GPU Architecture via Microbenchmarking", arXiv:2402.13499). H200 data sheet:
    # 4.8 TB/s. The boost clock is 1.98 GHz; 1.755 GHz under load is assumed.
    Part("H200", "sm_90", 132, 1.755, 4800, MMA_PRODUCTS / 512 / 0.63, 228 * 1024),
    # NVIDIA RTX Blackwell GPU Architecture (white paper), RTX 5090: 170 SMs, boost 2.407 GHz,
    # 1792 GB/s, 209.5 TFLOPS of halfs into floats: 64 products a clock and tensor core.
    Part("RTX 5090", "sm_120", 170, 2.407, 1792, MMA_PRODUCTS / 64, 100 * 1024),
)
