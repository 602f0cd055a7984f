# SPDX-License-Identifier: Apache-2.0
"""The formula, with numbers that were computed by hand."""

import unittest

import model
from model import Cost, Occupancy, Prediction
from parts import PARTS, Part
from presets import PRESETS

# 40 schedulers; a copy reaches 430 GB/s.
PART = Part("small", "sm_00", 10, 1.0, 480, 8, 164 * 1024)
CODED = Cost(instructions=320, mma=32, bytes=1000)
ROWS = Cost(instructions=640, mma=48, bytes=2000)
RESIDENT = Occupancy(blocks=2, bytes_in_flight=100_000)


def preset(name):
    return next(p for p in PRESETS if name in p.names)


def part(arch):
    return next(p for p in PARTS if p.arch == arch)


class Formula(unittest.TestCase):
    def check(self, found, **expected):
        for field, value in expected.items():
            self.assertAlmostEqual(getattr(found, field), value, places=9, msg=field)

    def test_all_in_codes(self):
        # 1024 tokens of 8 KV heads are 256 blocks, so 7 for the busiest of 40 schedulers.
        found = model.predict(PART, CODED, ROWS, RESIDENT, 0, 1024, 1)
        self.check(found, issue=2.240, tensor=7 * 32 * 8 / 1000, memory=256_000 / 430_000,
                   latency=0.5 + (8 * 480 + 4000) / 1000, total=2.240 + 8.340)

    def test_windows(self):
        # 224 blocks of codes and 32 of rows: 360 instructions, 34 HMMA and 1125 bytes on average.
        found = model.predict(PART, CODED, ROWS, RESIDENT, 128, 1024, 1)
        self.check(found, issue=2.520, tensor=7 * 34 * 8 / 1000, memory=256 * 1125 / 430_000)

    def test_windows_of_a_short_sequence_are_all_of_it(self):
        found = model.predict(PART, CODED, ROWS, RESIDENT, 128, 64, 1)
        self.check(found, tensor=48 * 8 / 1000, memory=16 * 2000 / 430_000)

    def test_batches_are_more_blocks(self):
        found = model.predict(PART, CODED, ROWS, RESIDENT, 0, 1024, 10)
        self.check(found, issue=64 * 320 / 1000, memory=2560 * 1000 / 430_000)

    def test_a_warp_alone_issues_every_other_clock(self):
        alone = model.predict(PART, CODED, ROWS, Occupancy(1, 100_000), 0, 1024, 1)
        self.check(alone, issue=4.480, tensor=7 * 32 * 8 / 1000)
        one_block = model.predict(PART, CODED, ROWS, RESIDENT, 0, 128, 1)
        self.check(one_block, issue=0.640)

    def test_few_bytes_in_flight_limit_the_bandwidth(self):
        # 10 * 8000 bytes in 0.8 us are 100 GB/s.
        found = model.predict(PART, CODED, ROWS, Occupancy(2, 8000), 0, 1024, 1)
        self.check(found, memory=2.560)

    def test_the_limit_is_what_takes_longest(self):
        self.assertEqual(Prediction(1, 2, 3, 4).limit, "latency")
        self.assertEqual(Prediction(1, 2, 5, 4).limit, "memory")
        self.assertEqual(Prediction(6, 2, 5, 4).total, 10)


class Budgets(unittest.TestCase):
    """The numbers that the kernels were designed for on an H200."""

    DESIGNED = {"int8": (260, 56), "k4v4": (132, 28), "innerq_base": (112, 24), "k3v3": (100, 21),
                "innerq_small": (96, 21), "k3v2": (84, 18), "k2v2": (68, 15)}

    def test_bytes_of_a_token(self):
        for name, (size, _) in self.DESIGNED.items():
            self.assertEqual(preset(name).token_bytes, size, name)

    def test_clocks_of_a_scheduler_for_a_token_at_full_bandwidth(self):
        hopper = part("sm_90")
        self.assertAlmostEqual(hopper.gb_per_s, 4300)
        for name, (size, clocks) in self.DESIGNED.items():
            ns = size / hopper.gb_per_s
            found = ns * hopper.clock_ghz * hopper.schedulers
            self.assertLess(abs(found - clocks), 0.6, name)

    def test_bytes_in_flight(self):
        hopper = part("sm_90")
        for size, share in ((26_100, 1), (13_050, 0.5)):
            found = model.bandwidth(hopper, Occupancy(1, size)) / 4300
            self.assertAlmostEqual(found, share, delta=0.01)


class Resident(unittest.TestCase):
    def blocks(self, arch, name, registers):
        return model.occupancy(part(arch), preset(name), {"registers": registers})

    def test_registers(self):
        for registers, blocks in ((128, 4), (121, 4), (129, 3), (168, 3), (255, 2)):
            self.assertEqual(self.blocks("sm_90", "k2v2", registers).blocks, blocks)

    def test_shared_memory(self):
        # k3v2: 2688 bytes for 32 tokens, two for each of four warps, 18688 of state, 1024 of the
        # driver: 41216 of 167936, 233472 and 102400.
        self.assertEqual(model.stage_bytes(preset("k3v2")), 2688)
        self.assertEqual(model.shared_bytes(preset("k3v2"), 2), 40192)
        for arch, blocks in (("sm_80", 4), ("sm_90", 4), ("sm_120", 2)):
            found = self.blocks(arch, "k3v2", 128)
            self.assertEqual((found.blocks, found.bytes_in_flight), (blocks, blocks * 4 * 2688))

    def test_tables_and_groups_take_shared_memory(self):
        # InnerQ: three more groups of 256 bytes; TurboQuant: tables of 256 and 64 words.
        self.assertEqual(model.shared_bytes(preset("innerq_base"), 2), 48128)
        self.assertEqual(model.shared_bytes(preset("turboquant"), 2), 50688)

    def test_more_thread_blocks_than_fit_are_not_launched(self):
        self.assertEqual(self.blocks("sm_90", "k2v2", 64).blocks, 4)

    def test_long_stages(self):
        # int8: 8320 bytes for 32 tokens.
        self.assertEqual(model.shared_bytes(preset("int8"), 2), 85248)
        self.assertEqual(self.blocks("sm_90", "int8", 128), Occupancy(2, 2 * 4 * 8320))

    def test_plain_rows_pass_by_shared_memory(self):
        self.assertEqual(self.blocks("sm_80", "fp16", 128), Occupancy(4, 4 * 4 * 4096))


class Kernels(unittest.TestCase):
    def test_costs_are_for_32_tokens(self):
        unrolled = {"tokens_per_iteration": 64, "loop_instructions": 640, "mma": 68}
        self.assertEqual(model.cost(preset("k3v2"), unrolled), Cost(320, 34, 32 * 84))

    def test_names(self):
        first, _ = preset("innerq_hybrid").kernel_names
        self.assertEqual(first, "attention_kernel<attention_shape<coded_format<3, (axis)1,"
                         " (levels)0, half, 32>, coded_format<2, (axis)2, (levels)2, half, 0>,"
                         " half, 128, 128, 32, 1> >")
        self.assertIn("<plain_format<bfloat16>, plain_format<bfloat16>, bfloat16, 128",
                      preset("bf16").kernel_names[1])
