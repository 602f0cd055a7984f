# SPDX-License-Identifier: Apache-2.0
"""Attention: which of its loops counts, and what a token of both sides costs."""

import unittest

import counts
from sass_text import function

SHAPE = {"kind": "attention", "k_bits": 3, "v_bits": 2, "head_dim": 128, "value_dim": 128,
         "tile": 32, "gqa": 8}
EX2 = "MUFU.EX2 R1, R1"
AND = "LOP3.LUT R28, R12, 0xf000f, RZ, 0xc0, !PT"
READ = "LDS.128 R12, [R34]"
ROW = "LDG.E.NA.128.CONSTANT R12, [R34.64]"
COPY = "LDGSTS.E.BYPASS.128 [R5], [R2.64]"
TABLE = "@P2 LDG.E R67, [R12.64]"
MMA = "HMMA.16816.F32 R4, R4, R8, RZ"
MOVE = "MOVM.16.MT88 R1, R2"
PACK = "F2FP.F16.F32.PACK_AB R1, R2, R3"


def loop(number, *lines):
    return [f".L_x_{number}:", *lines, MMA, f"@!P0 BRA `(.L_x_{number})"]


def fields(lines, **named):
    return counts.fields(function("\n".join([*lines, "EXIT"])), SHAPE | named)


class Costs(unittest.TestCase):
    # 3 bits: 32 tokens of 128 codes are 12 words of each of 32 lanes; 2 bits: 8 words.
    BODY = [*[COPY] * 7, *[READ] * 5, *[AND] * 160, *[EX2] * 8, *[MOVE] * 4, *[PACK] * 4]

    def test_a_block_of_32_tokens(self):
        found = fields(loop(1, *self.BODY))
        # Eight columns of 32 tokens are 256 weights, 8 for each lane.
        self.assertEqual(found["tokens_per_iteration"], 32)
        self.assertEqual(found["codes_per_iteration"], 32 * 256)
        self.assertEqual(found["integer_ops_per_code"], 160 / 256)
        self.assertEqual(found["instructions_per_token"], (len(self.BODY) + 2) / 32)
        self.assertEqual((found["movm_per_tile"], found["f2fp_per_tile"]), (4, 4))
        self.assertEqual(found["narrow_code_bytes"], 0)

    def test_two_column_tiles_have_twice_the_weights(self):
        found = fields(loop(1, *self.BODY, *[EX2] * 8, *[MOVE] * 4), gqa=16)
        self.assertEqual((found["tokens_per_iteration"], found["movm_per_tile"]), (32, 4))

    def test_a_block_of_16_tokens(self):
        found = fields(loop(1, COPY, *[READ] * 2, "LDS.64 R1, [R2]", *[EX2] * 4), tile=16)
        self.assertEqual((found["tokens_per_iteration"], found["narrow_code_bytes"]), (16, 0))

    def test_an_unrolled_loop_costs_the_same_per_token(self):
        found = fields(loop(1, *self.BODY * 2))
        self.assertEqual(found["tokens_per_iteration"], 64)
        self.assertEqual(found["integer_ops_per_code"], 160 / 256)

    def test_values_of_another_head_dim(self):
        found = fields(loop(1, *[READ] * 8, *[EX2] * 8), head_dim=192, value_dim=128)
        self.assertEqual(found["codes_per_iteration"], 32 * 320)

    def test_narrow_reads_and_copies(self):
        reads = [*[READ] * 4, *["LDS.64 R1, [R2]"] * 2, *[EX2] * 8]
        self.assertEqual(fields(loop(1, *reads))["narrow_code_bytes"], 16)
        copies = ["LDGSTS.E.64 [R5], [R2.64]", *[READ] * 5, *[EX2] * 8]
        self.assertEqual(fields(loop(1, *copies))["narrow_code_bytes"], 8)

    def test_plain_rows_do_not_come_through_shared_memory(self):
        found = fields(loop(1, *[ROW] * 32, *[EX2] * 8), k_bits=16, v_bits=16)
        self.assertEqual((found["tokens_per_iteration"], found["narrow_code_bytes"]), (32, 0))

    def test_a_loop_without_weights_has_no_tokens(self):
        found = fields(loop(1, READ))
        self.assertIsNone(found["instructions_per_token"])
        self.assertIsNone(found["narrow_code_bytes"])

    def test_soft_cap_and_rescaling_are_rare(self):
        found = fields([
            ".L_x_1:", *self.BODY, "FSETP.LT.AND P1, PT, RZ, c[0x0][0x1], PT",
            "@P1 BRA `(.L_x_2)", "FFMA R1, R2, R3, R4", "FFMA R1, R2, R3, R4", "BRA `(.L_x_3)",
            ".L_x_2:", *[EX2] * 8, *["MUFU.RCP R1, R1"] * 8, ".L_x_3:",
            "VOTE.ANY P0, P0", "@!P0 BRA `(.L_x_4)", "SHFL.BFLY PT, R16, R25, 0x4, 0x1f", EX2,
            ".L_x_4:", MMA, "@!P0 BRA `(.L_x_1)"])
        self.assertEqual((found["tokens_per_iteration"], found["rcp"], found["shfl"]), (32, 0, 0))
        self.assertEqual(found["rare_instructions"], 18)


class Loops(unittest.TestCase):
    """A loop for each way in which keys and values are stored."""

    WINDOWS = loop(1, *[ROW] * 32, *["PRMT R1, R2, 0x5410, R3"] * 300)
    KEYS = loop(2, COPY, TABLE, *[ROW] * 16, *[AND] * 200)
    VALUES = loop(3, COPY, TABLE, *[ROW] * 16, *[AND] * 80)

    def check(self, *coded):
        for lines in ([*self.WINDOWS, *self.KEYS, *coded, *self.VALUES],
                      [*coded, *self.VALUES, *self.KEYS, *self.WINDOWS]):
            self.assertEqual(fields(lines)["ex2"], 8)

    def test_the_one_with_the_copies_of_both_sides(self):
        self.check(*loop(4, *[COPY] * 2, TABLE, TABLE, *[AND] * 150, *[EX2] * 8))

    def test_bulk_copies(self):
        start = "UBLKCP.S.G [UR4], [UR6], UR8"
        other = loop(1, start, *[ROW] * 16, *[AND] * 200)
        both = loop(2, start, start, *[READ] * 5, *[EX2] * 8)
        self.assertEqual(fields([*other, *both])["ex2"], 8)

    def test_one_bulk_copy_for_both_sides(self):
        start = "UBLKCP.S.G [UR4], [UR6], UR8"
        other = loop(1, start, TABLE, *[ROW] * 16, *[AND] * 200)
        both = loop(2, start, TABLE, *[READ] * 5, *[AND] * 150, *[EX2] * 8)
        for lines in ([*other, *both], [*both, *other]):
            self.assertEqual(fields(lines)["ex2"], 8)

    def test_plain_rows_in_pages_by_their_block_tables(self):
        keys = loop(2, *["LDG.E R1, [R2.64]"] * 4, *[ROW] * 32, *[AND] * 9)
        both = loop(4, *["LDG.E R1, [R2.64]"] * 12, *[ROW] * 32, *[EX2] * 8)
        for lines in ([*self.WINDOWS, *keys, *both], [*both, *keys, *self.WINDOWS]):
            self.assertEqual(fields(lines)["ex2"], 8)

    def test_bulk_copies_go_before_those_of_lanes(self):
        found = fields([
            ".L_x_1:", "@P1 BRA `(.L_x_2)", COPY, COPY, "BRA `(.L_x_3)", ".L_x_2:",
            *["FADD R1, R1, R2"] * 9, "UBLKCP.S.G [UR4], [UR6], UR8", ".L_x_3:", *[EX2] * 8, MMA,
            "@!P0 BRA `(.L_x_1)"])
        self.assertEqual((found["async_copies"], found["ex2"]), ({}, 8))

    def test_a_loop_in_a_subroutine(self):
        found = fields([*self.WINDOWS, "CALL.REL.NOINC `($segment)", "EXIT", "$segment:",
                        *loop(4, *[COPY] * 2, *[EX2] * 8), "RET.REL.NODEC R20 `(kernel)"])
        self.assertEqual(found["ex2"], 8)
