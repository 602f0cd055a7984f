# SPDX-License-Identifier: Apache-2.0
"""Counts of instructions, and the costs per code and per token that follow from the loads."""

import unittest

import counts
from sass_text import function


def loop(*lines):
    """A loop of these instructions, with one of the tensor cores and its branch."""
    return function("\n".join([".L_x_1:", *lines, "HMMA.16816.F32 R4, R4, R8, RZ",
                               "@!P0 BRA `(.L_x_1)", "EXIT"]))


def fields(lines, **named):
    return counts.fields(loop(*lines), {"kind": "gemv_qk"} | named)


LOAD_128 = "LDG.E.NA.LTC128B.128.CONSTANT R12, [R34.64]"
LOAD_64 = "LDG.E.NA.64.CONSTANT R12, [R34.64]"
SCALE = "LDG.E.U16 R32, [R34.64+0x10]"
AND = "LOP3.LUT R28, R12, 0xf000f, RZ, 0xc0, !PT"


class Counted(unittest.TestCase):
    def test_every_kind_once(self):
        once = {"lop3": AND, "shf": "SHF.R.U32.HI R30, RZ, 0x8, R12",
                "prmt": "PRMT R1, R2, 0x5410, R3", "imad": "IMAD.WIDE R12, R44, 0x80, RZ",
                "shfl": "SHFL.BFLY PT, R16, R25, 0x1, 0x1f", "i2f": "I2FP.F32.S32 R1, R1",
                "f2i": "F2I.NTZ R1, R1", "f2f": "F2F.F16.F32 R1, R1",
                "f2fp": "F2FP.F16.F32.PACK_AB R1, R2, R3", "movm": "MOVM.16.MT88 R1, R2",
                "mufu": "MUFU.TANH R1, R2", "barriers": "BAR.SYNC.DEFER_BLOCKING 0x0",
                "calls": "CALL.REL.NOINC `(subroutine)", "iadd": "VIADD R1, R1, 0x1"}
        for field, line in once.items():
            with self.subTest(field):
                found = fields([line])
                self.assertEqual({key: found[key] for key in once},
                                 dict.fromkeys(once, 0) | {field: 1})
                self.assertEqual(found["integer_ops"], field in ("lop3", "shf", "prmt"))
                self.assertEqual((found["mma"], found["loop_instructions"]), (1, 3))

    def test_what_is_like_an_integer_operation_and_is_none(self):
        found = fields(["PLOP3.LUT P0, PT, P0, P1, PT, 0xa8, 0x0", "ULOP3.LUT UR4, UR4, 0x1, URZ",
                        "USHF.L.U32 UR4, UR4, 0x1, URZ", "LEA R1, R2, R3, 0x4"])
        self.assertEqual(found["integer_ops"], 0)

    def test_a_reciprocal_is_told_from_other_functions(self):
        found = fields(["MUFU.RCP R1, R2", "MUFU.EX2 R1, R2", "MUFU.RCP64H R1, R2"])
        self.assertEqual((found["mufu"], found["rcp"], found["ex2"]), (3, 2, 1))

    def test_padding_takes_a_slot_and_does_nothing(self):
        found = fields(["@!PT LDS RZ, [RZ]", "@!PT SHFL.IDX PT, R1, R1, R1, R1"])
        self.assertEqual((found["loop_instructions"], found["shared_loads"], found["shfl"]),
                         (4, {}, 0))

    def test_widths_of_loads(self):
        found = fields([LOAD_128, LOAD_128, LOAD_64, SCALE, "LDG.E R1, [R2.64]",
                        "LDG.E.U8 R1, [R2.64]", "@P1 LDG.E.S16 R1, [R2.64]",
                        "LDGSTS.E.BYPASS.128 [R5], [R2.64]", "LDS.64 R1, [R2]",
                        "LDS.U.128 R4, [R2]"])
        self.assertEqual(found["global_loads"], {"128": 2, "64": 1, "32": 1, "16": 2, "8": 1})
        self.assertEqual(found["async_copies"], {"128": 1})
        self.assertEqual(found["shared_loads"], {"128": 1, "64": 1})

    def test_local_memory_is_seen_anywhere(self):
        code = function("STL [R1], R2\nLDL.LU R2, [R1]\nEXIT")
        self.assertEqual(counts.fields(code, {"kind": "encode"})["local_accesses"], 2)


class PerCode(unittest.TestCase):
    # A tile is 32 tokens of head_dim codes: each of 32 lanes holds head_dim codes in whole words.
    def test_a_tile_of_each_width(self):
        for bits, head_dim, loads in ((2, 128, [LOAD_128] * 2), (3, 128, [LOAD_128] * 3),
                                      (4, 128, [LOAD_128] * 4), (8, 128, [LOAD_128] * 8),
                                      (16, 64, [LOAD_128] * 8), (3, 64, [LOAD_128, LOAD_64]),
                                      (4, 80, [LOAD_128] * 2 + [LOAD_64]), (3, 80, [LOAD_128] * 2),
                                      (2, 80, [LOAD_128, "LDG.E.EF R1, [R2.64]"])):
            with self.subTest(bits=bits, head_dim=head_dim):
                found = fields([*loads, SCALE], k_bits=bits, head_dim=head_dim)
                self.assertEqual(found["tokens_per_iteration"], 32)
                self.assertEqual(found["codes_per_iteration"], 32 * head_dim)
                self.assertEqual(found["narrow_code_bytes"], 0)

    def test_an_unrolled_loop_costs_the_same_per_code(self):
        body = [*[LOAD_128] * 4, SCALE, *[AND] * 80, "F2FP.F16.F32.PACK_AB R1, R2, R3"]
        once = fields(body, k_bits=4, head_dim=128)
        twice = fields(body * 2, k_bits=4, head_dim=128)
        self.assertEqual(once["integer_ops_per_code"], 80 / 128)  # in every lane
        self.assertEqual(twice["integer_ops_per_code"], 80 / 128)
        self.assertEqual(once["instructions_per_token"], 88 / 32)
        self.assertEqual(twice["instructions_per_token"], 174 / 64)
        self.assertEqual((once["f2fp_per_tile"], twice["f2fp_per_tile"]), (1, 1))

    def test_conversions_are_counted_for_eight_heads(self):
        body = [*[LOAD_128] * 4, *["MOVM.16.MT88 R1, R2"] * 8]
        for gqa, each in ((1, 8), (8, 8), (9, 4), (16, 4)):
            found = fields(body, k_bits=4, head_dim=128, gqa=gqa)
            self.assertEqual(found["movm_per_tile"], each)

    def test_loads_of_codes_are_the_marked_ones_or_the_wide_ones(self):
        wide_scales = "LDG.E.128.CONSTANT R1, [R2.64]"
        marked = fields([*[LOAD_128] * 4, wide_scales], k_bits=4, head_dim=128)
        self.assertEqual(marked["tokens_per_iteration"], 32)
        plain = fields([wide_scales] * 4 + [SCALE, "LDG.E.64 R1, [R2.64]"], k_bits=4, head_dim=128)
        self.assertEqual(plain["tokens_per_iteration"], 32)

    def test_codes_that_come_through_shared_memory(self):
        copies = fields(["LDGSTS.E.BYPASS.128 [R5], [R2.64]"] * 3 + ["LDS.128 R1, [R2]"] * 3,
                        k_bits=3, head_dim=128)
        bulk = fields(["UBLKCP.S.G [UR4], [UR6], UR8"] + ["LDS.128 R1, [R2]"] * 3 + [SCALE],
                      k_bits=3, head_dim=128)
        self.assertEqual(copies["tokens_per_iteration"], 32)
        self.assertEqual(bulk["tokens_per_iteration"], 32)

    def test_narrow_loads_are_those_beyond_the_tail(self):
        found = fields([LOAD_64] * 8, k_bits=4, head_dim=128)
        self.assertEqual(found["narrow_code_bytes"], 64)
        found = fields([LOAD_64] * 5, k_bits=4, head_dim=80)
        self.assertEqual(found["narrow_code_bytes"], 32)

    def test_what_cannot_be_counted_is_none(self):
        for lines, named in (([SCALE], {"k_bits": 4, "head_dim": 128}),
                             ([LOAD_128], {"head_dim": 128}), ([LOAD_128], {"k_bits": 4}),
                             ([LOAD_128], {"kind": "encode", "k_bits": 4, "head_dim": 128})):
            found = fields(lines, **named)
            self.assertIsNone(found["integer_ops_per_code"])
            self.assertIsNone(found["instructions_per_token"])
