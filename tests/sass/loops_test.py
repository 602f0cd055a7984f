# SPDX-License-Identifier: Apache-2.0
"""Loops are found, with the common way around them."""

import unittest

import counts
from sass_text import function


def ops(lines):
    """The straight path of the main loop as a string of first words, and the rare instructions."""
    main = counts.main_loop(function(lines))
    return " ".join(x.base for x in main.code), len(main.everything) - len(main.code)


class StraightPath(unittest.TestCase):
    def test_prologue_and_epilogue_are_outside(self):
        self.assertEqual(ops("""
            MOV R1, R2
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            IADD3 R1, R1, 0x1, RZ
            @!P0 BRA `(.L_x_1)
            STG.E [R2.64], R4
            EXIT"""), ("HMMA IADD3 BRA", 0))

    def test_a_skipped_branch_is_rare_inline_and_out_of_line(self):
        inline = """
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P1 BRA `(.L_x_2)
            LDG.E R3, [R2.64]
            MUFU.EX2 R3, R3
            .L_x_2:
            @!P0 BRA `(.L_x_1)
            EXIT"""
        out_of_line = """
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            @P1 BRA `(.L_x_3)
            .L_x_2:
            @!P0 BRA `(.L_x_1)
            EXIT
            .L_x_3:
            FMUL R3, R3, R3
            MUFU.EX2 R3, R3
            BRA `(.L_x_2)"""
        self.assertEqual(ops(inline), ("HMMA BRA BRA", 2))
        self.assertEqual(ops(out_of_line), ("HMMA BRA BRA", 3))

    def test_the_slow_way_of_a_warp_collective_is_rare(self):
        self.assertEqual(ops("""
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            BRA.DIV ~URZ, `(.L_x_3)
            VOTE.ANY P0, P0
            .L_x_2:
            @!P0 BRA `(.L_x_1)
            EXIT
            .L_x_3:
            MOV R20, 0x80
            CALL.REL.NOINC `($__internal_1_$__cuda_sm70_votesync_any)
            BRA `(.L_x_2)
            $__internal_1_$__cuda_sm70_votesync_any:
            RET.REL.NODEC R20 `(kernel)"""), ("HMMA BRA VOTE BRA", 3))

    def test_of_two_arms_the_shorter_counts(self):
        self.assertEqual(ops("""
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            @P1 BRA `(.L_x_2)
            FMUL R3, R3, R3
            FMUL R3, R3, R3
            FMUL R3, R3, R3
            BRA `(.L_x_3)
            .L_x_2:
            FADD R3, R3, R3
            .L_x_3:
            @!P0 BRA `(.L_x_1)
            EXIT"""), ("HMMA BRA FADD BRA", 4))

    def test_code_behind_an_exit_is_not_reached_from_it(self):
        self.assertEqual(ops("""
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            @!PT BRA `(.L_x_3)
            @P1 BRA `(.L_x_2)
            EXIT
            FMUL R3, R3, R3
            .L_x_2:
            @!P0 BRA `(.L_x_1)
            .L_x_3:
            EXIT"""), ("HMMA BRA BRA BRA", 0))

    def test_work_that_a_branch_can_skip_is_not_rare(self):
        self.assertEqual(ops("""
            .L_x_1:
            ISETP.GE.AND P1, PT, R0, R1, PT
            @P1 BRA `(.L_x_2)
            LDG.E.NA.128 R8, [R2.64]
            .L_x_2:
            @P2 BRA `(.L_x_3)
            HMMA.16816.F32 R4, R4, R8, RZ
            .L_x_3:
            @!P0 BRA `(.L_x_1)
            EXIT"""), ("ISETP BRA LDG BRA HMMA BRA", 0))

    def test_a_loop_that_continues_early_is_counted_around_its_work(self):
        self.assertEqual(ops("""
            .L_x_1:
            IADD3 R1, R1, 0x1, RZ
            @P1 BRA `(.L_x_1)
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P0 BRA `(.L_x_1)
            EXIT"""), ("IADD3 BRA HMMA BRA", 0))

    def test_a_call_of_a_local_label_is_a_far_jump(self):
        lines = """
            .L_x_1:
            HMMA.16816.F32 R4, R4, R8, RZ
            @P0 CALL.REL.NOINC `(.L_x_2)
            BRA `(.L_x_1)
            .L_x_2:
            EXIT"""
        self.assertEqual(ops(lines), ("HMMA CALL BRA", 0))
        self.assertEqual(counts.fields(function(lines), {"kind": "gemv_qk"})["calls"], 0)

    def test_of_decoding_and_16_bit_tokens_in_one_loop_decoding_counts(self):
        window = "LDG.E.NA.128 R8, [R2.64]\nHMMA.16816.F32 R4, R8, R12, RZ\n"
        coded = "LOP3.LUT R8, R8, 0x70007, RZ, 0xc0, !PT\n" * 9 + "HMMA.16816.F32 R4, R8, R12, RZ\n"
        loop = """
            .L_x_1:
            @P1 BRA `(.L_x_2)
            {}
            BRA `(.L_x_3)
            .L_x_2:
            {}
            .L_x_3:
            @!P0 BRA `(.L_x_1)
            EXIT"""
        for arms in ((window, coded), (coded, window)):
            path, rare = ops(loop.format(*arms))
            self.assertEqual((path.count("LOP3"), path.count("LDG")), (9, 0))
            self.assertIn(rare, (2, 3))

    def test_a_copy_that_one_lane_starts_is_not_rare(self):
        self.assertEqual(ops("""
            .L_x_1:
            BSSY B0, `(.L_x_3)
            @P1 BRA `(.L_x_2)
            UBLKCP.S.G [UR4], [UR6], UR8
            .L_x_2:
            BSYNC B0
            .L_x_3:
            LDS.128 R4, [R2]
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P0 BRA `(.L_x_1)
            EXIT"""), ("BSSY BRA UBLKCP BSYNC LDS HMMA BRA", 0))

    def test_waiting_for_a_barrier_counts_once(self):
        self.assertEqual(ops("""
            .L_x_1:
            IADD3 R1, R1, 0x1, RZ
            .L_x_2:
            SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [R3], R4
            @!P1 BRA `(.L_x_2)
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P0 BRA `(.L_x_1)
            EXIT"""), ("IADD3 SYNCS BRA HMMA BRA", 0))

    def test_threads_meet_where_their_barrier_says(self):
        self.assertEqual(ops("""
            .L_x_1:
            BSSY B0, `(.L_x_3)
            @P1 BRA `(.L_x_2)
            BSYNC B0
            .L_x_3:
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P0 BRA `(.L_x_1)
            EXIT
            .L_x_2:
            FMUL R3, R3, R3
            BSYNC B0"""), ("BSSY BRA BSYNC HMMA BRA", 2))

    def test_a_barrier_whose_start_stands_behind_its_end(self):
        self.assertEqual(ops("""
            BSSY B0, `(.L_x_0)
            BSYNC B0
            .L_x_0:
            BRA `(.L_x_1)
            .L_x_2:
            BSYNC B0
            .L_x_3:
            HMMA.16816.F32 R4, R4, R8, RZ
            @P0 EXIT
            .L_x_1:
            BSSY B0, `(.L_x_3)
            @P1 BRA `(.L_x_2)
            FMUL R3, R3, R3
            BRA `(.L_x_2)"""), ("BSSY BRA BSYNC HMMA EXIT", 2))

    def test_a_barrier_that_is_used_twice(self):
        self.assertEqual(ops("""
            .L_x_1:
            BSSY B0, `(.L_x_2)
            @P1 BRA `(.L_x_6)
            BSYNC B0
            .L_x_2:
            HMMA.16816.F32 R4, R4, R8, RZ
            BSSY B0, `(.L_x_3)
            @P2 BRA `(.L_x_4)
            FMUL R3, R3, R3
            FMUL R3, R3, R3
            FMUL R3, R3, R3
            .L_x_4:
            BSYNC B0
            .L_x_3:
            @!P0 BRA `(.L_x_1)
            .L_x_6:
            EXIT"""), ("BSSY BRA BSYNC HMMA BSSY BRA BSYNC BRA", 3))


class MainLoop(unittest.TestCase):
    def test_the_innermost_with_tensor_core_instructions(self):
        self.assertEqual(ops("""
            .L_x_0:
            LDG.E.128 R8, [R2.64]
            .L_x_1:
            LDG.E.128 R12, [R2.64]
            @!P2 BRA `(.L_x_1)
            .L_x_2:
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P0 BRA `(.L_x_2)
            @!P1 BRA `(.L_x_0)
            EXIT"""), ("HMMA BRA", 0))

    def test_the_one_that_decodes_goes_before_one_that_reads_more(self):
        self.assertEqual(ops("""
            .L_x_1:
            LDG.E.128 R8, [R2.64]
            LDG.E.128 R12, [R2.64+0x200]
            HMMA.16816.F32 R4, R8, R12, RZ
            @!P0 BRA `(.L_x_1)
            .L_x_2:
            LDG.E.128 R8, [R2.64]
            LOP3.LUT R8, R8, 0x70007, RZ, 0xc0, !PT
            HMMA.16816.F32 R4, R8, R12, RZ
            @!P1 BRA `(.L_x_2)
            EXIT"""), ("LDG LOP3 HMMA BRA", 0))

    def test_without_tensor_cores_the_one_that_reads_most(self):
        self.assertEqual(ops("""
            .L_x_1:
            LDG.E.64 R8, [R2.64]
            LOP3.LUT R8, R8, 0x70007, RZ, 0xc0, !PT
            @!P0 BRA `(.L_x_1)
            .L_x_2:
            LDG.E.128 R8, [R2.64]
            @!P1 BRA `(.L_x_2)
            .L_x_3:
            LDG.E R8, [R2.64]
            LOP3.LUT R8, R8, 0x70007, RZ, 0xc0, !PT
            LOP3.LUT R8, R8, 0x70007, RZ, 0xc0, !PT
            @!P1 BRA `(.L_x_3)
            EXIT"""), ("LDG BRA", 0))

    def test_loops_inside_that_do_more_than_wait_are_told(self):
        lines = """
            .L_x_1:
            IADD3 R1, R1, 0x1, RZ
            .L_x_2:
            {}
            @!P2 BRA `(.L_x_2)
            HMMA.16816.F32 R4, R4, R8, RZ
            @!P1 BRA `(.L_x_1)
            EXIT"""
        for inside, number in (("FADD R3, R3, R3", 1), ("UBLKCP.S.G [UR4], [UR6], UR8", 0),
                               ("SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [R3], R4", 0)):
            code = function(lines.replace("{}", inside))
            self.assertEqual(counts.main_loop(code).inner_loops, number)
