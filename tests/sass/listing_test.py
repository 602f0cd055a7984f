# SPDX-License-Identifier: Apache-2.0
"""Listings are read as they stand."""

import unittest

import counts
import listing
from loops import Graph
from sass_text import function, text


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
