# SPDX-License-Identifier: Apache-2.0
"""Listings are read and loops found, with the common way through them."""

import unittest

import counts
import listing
from loops import Graph
from sass_text import function, text


def ops(lines):
    """The straight path of the main loop as a string of first words, and the rare instructions."""
    main = counts.main_loop(function(lines))
    return " ".join(x.base for x in main.code), len(main.everything) - len(main.code)


class Listing(unittest.TestCase):
    def test_guards_modifiers_and_targets(self):
        code = function("""
            LDG.E.NA.LTC128B.128.CONSTANT R12, desc[UR4][R34.64+0x400]
            @!P0 BRA `(.L_x_1)
            @!UPT UIADD3 URZ, URZ, URZ, URZ
            BRA.DIV ~URZ, `(.L_x_1)
            .L_x_1:
            EXIT""")
        load, branch, padding, divergent, leave = code.instructions
        self.assertEqual((load.base, counts.width(load)), ("LDG", 128))
        self.assertEqual((branch.guard, branch.target, branch.conditional), ("!P0", ".L_x_1", True))
        self.assertTrue(padding.never_runs)
        self.assertTrue(divergent.conditional)
        self.assertFalse(leave.conditional)
        self.assertEqual(code.labels[".L_x_1"], 4)

    def test_each_section_of_code_is_a_function(self):
        two = text("EXIT", "first") + "\t.section\t.nv.info,\"\",@\"SHT_CUDA_INFO\"\n" + text(
            "NOP\nEXIT", "second")
        self.assertEqual([(f.name, len(f.instructions)) for f in listing.parse(two)],
                         [("first", 1), ("second", 2)])

    def test_no_code(self):
        self.assertEqual(listing.parse(""), [])
        self.assertIsNone(counts.main_loop(function("")))
        self.assertIsNone(counts.main_loop(function("NOP\nEXIT")))

    def test_the_trap_behind_a_kernel_is_no_loop(self):
        self.assertEqual(Graph(function("EXIT\n.L_x_9:\nBRA `(.L_x_9)\nNOP")).loops(), [])


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
            FMUL R3, R3, R3
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


class MainLoop(unittest.TestCase):
    def test_the_innermost_with_tensor_core_instructions(self):
        self.assertEqual(ops("""
            .L_x_0:
            LDG.E.128 R8, [R2.64]
            .L_x_1:
            FADD R3, R3, R3
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
            @!P0 BRA `(.L_x_1)
            .L_x_2:
            LDG.E.128 R8, [R2.64]
            @!P1 BRA `(.L_x_2)
            .L_x_3:
            LDG.E R8, [R2.64]
            FADD R8, R8, R8
            FADD R8, R8, R8
            @!P1 BRA `(.L_x_3)
            EXIT"""), ("LDG BRA", 0))
