# SPDX-License-Identifier: Apache-2.0
"""Names of kernels, the words of ptxas, and limits."""

import tempfile
import unittest
from pathlib import Path

import budgets
import cubins
import names

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5firstPf' for 'sm_80'
ptxas info    : Function properties for _Z5firstPf
    256 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 30 registers, used 1 barriers, 304 bytes cumulative stack size, 512 bytes smem
ptxas info    : Compile time = 11.783 ms
ptxas info    : Compiling entry function '_Z6secondPf' for 'sm_80'
ptxas info    : Function properties for _Z6secondPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 47 registers, used 0 barriers, 388 bytes cmem[0]
"""

KERNEL = {"name": "gemv_qk_kernel", "arch": "sm_90", "kind": "gemv_qk", "k_bits": 3, "bits": 3,
          "registers": 96, "integer_ops_per_code": 0.72, "instructions_per_token": None,
          "spill_bytes": 0, "local_bytes": 0, "local_accesses": 0}


class Names(unittest.TestCase):
    def check(self, demangled, short, **expected):
        self.assertEqual(names.shortened(demangled), short)
        self.assertEqual(names.fields(short), expected)

    def test_gemv(self):
        self.check(
            "void kvarts::kernels::gemv_qk_kernel<kvarts::kernels::coded_format<3, (kvarts::axis)0,"
            " (kvarts::kernels::levels)0, kvarts::half, 0>, 128, 32, 1>(kvarts::kernels::"
            "qk_arguments)",
            "gemv_qk_kernel<coded_format<3, (axis)0, (levels)0, half, 0>, 128, 32, 1>",
            kind="gemv_qk", k_bits=3, k_along="row", k_levels="uniform", bits=3, along="row",
            levels="uniform", head_dim=128,
            tile=32, gqa=8)
        self.check(
            "void kvarts::kernels::gemv_pv_kernel<kvarts::kernels::coded_format<2, (kvarts::axis)2,"
            " (kvarts::kernels::levels)2, kvarts::half, 0>, 80, 16, 2>(int)",
            "gemv_pv_kernel<coded_format<2, (axis)2, (levels)2, half, 0>, 80, 16, 2>",
            kind="gemv_pv", v_bits=2, v_along="token", v_levels="hybrid", bits=2,
            along="token", levels="hybrid", head_dim=80,
            tile=16, gqa=16)

    def test_ways_to_the_same_product(self):
        self.check("void gemv_qk_tokens_kernel<coded_format<2, (axis)2, (levels)1, half, 0>, 128,"
                   " 32, 1>()",
                   "gemv_qk_tokens_kernel<coded_format<2, (axis)2, (levels)1, half, 0>, 128, 32, 1>",
                   kind="gemv_qk", k_bits=2, k_along="token", k_levels="zero", bits=2,
                   along="token", levels="zero", head_dim=128, tile=32, gqa=8)
        self.check("void gemv_pv_plain_kernel<kvarts::bfloat16, 64, 2>()",
                   "gemv_pv_plain_kernel<bfloat16, 64, 2>", kind="gemv_pv", v_bits=16,
                   v_along="row", v_levels="plain", bits=16, along="row",
                   levels="plain", head_dim=64, tile=16, gqa=16)

    def test_attention(self):
        keys = "coded_format<3, (axis)1, (levels)0, half, 32>"
        values = "coded_format<2, (axis)0, (levels)3, float, 0>"
        self.check(f"void kvarts::kernels::attention_kernel<kvarts::kernels::attention_shape<{keys},"
                   f" {values}, kvarts::bfloat16, 192, 128, 32, 2> >(attention_arguments)",
                   f"attention_kernel<attention_shape<{keys}, {values}, bfloat16, 192, 128, 32, 2> >",
                   kind="attention", k_bits=3, k_along="channel", k_levels="uniform", v_bits=2,
                   v_along="row", v_levels="table", window="bfloat16", head_dim=192,
                   value_dim=128, tile=32, gqa=16)

    def test_attention_on_plain_rows(self):
        rows = "plain_format<half>"
        self.check(f"void attention_kernel<attention_shape<{rows}, {rows}, half, 64, 64, 16, 1> >()",
                   f"attention_kernel<attention_shape<{rows}, {rows}, half, 64, 64, 16, 1> >",
                   kind="attention", k_bits=16, k_along="row", k_levels="plain", v_bits=16,
                   v_along="row", v_levels="plain", bits=16, along="row", levels="plain",
                   window="half", head_dim=64, value_dim=64, tile=16, gqa=8)

    def test_others(self):
        self.check("(anonymous namespace)::norms(float const*, void (*)(int))", "norms",
                   kind="norms")
        self.check("void kvarts::merge_kernel<128u>(float*)", "merge_kernel<128u>", kind="merge")
        self.check("void gemv_pv_merge_kernel<128>(int)", "gemv_pv_merge_kernel<128>",
                   kind="gemv_pv_merge")
        self.check("void encode_kernel<view<codec<midrise<3> > > >(int)",
                   "encode_kernel<view<codec<midrise<3> > > >", kind="encode")


class Resources(unittest.TestCase):
    def test_each_kernel(self):
        self.assertEqual(cubins.resources(PTXAS), {
            "_Z5firstPf": {"registers": 30, "shared_bytes": 512, "spill_bytes": 20,
                           "local_bytes": 304},
            "_Z6secondPf": {"registers": 47, "shared_bytes": 0, "spill_bytes": 0,
                            "local_bytes": 0}})


class Limits(unittest.TestCase):
    def broken(self, **budget):
        return budgets.broken([KERNEL], [budget])

    def test_at_and_above(self):
        self.assertEqual(self.broken(max_registers=96), [])
        self.assertEqual(self.broken(max_registers=95),
                         ["gemv_qk_kernel sm_90: registers is 96, at most 95 allowed"])
        self.assertEqual(len(self.broken(max_registers=95, max_integer_ops_per_code=0.7)), 2)

    def test_only_chosen_kernels(self):
        self.assertEqual(self.broken(kind="gemv_pv", max_registers=1), [])
        self.assertEqual(self.broken(v_bits=3, max_registers=1), [])
        self.assertEqual(self.broken(k_bits=[2, 4], max_registers=1), [])
        chosen = self.broken(kind=["gemv_pv", "gemv_qk"], k_bits=3, max_registers=1)
        self.assertEqual(len(chosen), 1)

    def test_what_was_not_counted_breaks_its_limit(self):
        self.assertEqual(len(self.broken(max_instructions_per_token=11)), 1)
        self.assertEqual(len(self.broken(max_registres=11)), 1)

    def test_notes_choose_nothing(self):
        self.assertEqual(len(self.broken(note="why", max_registers=1)), 1)

    def test_local_memory(self):
        self.assertEqual(budgets.in_memory([KERNEL]), [])
        for field in ("spill_bytes", "local_bytes", "local_accesses"):
            self.assertEqual(len(budgets.in_memory([KERNEL | {field: 4}])), 1)

    def test_files_that_are_no_budgets(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "budgets.json")
            for wrong in ("", "{}", "[1]", '[{"max_shfl": "many"}]', '[{"max_shfl": true}]'):
                path.write_text(wrong)
                with self.assertRaisesRegex(SystemExit, "budgets.json"):
                    budgets.read(path)
        with self.assertRaisesRegex(SystemExit, "absent.json"):
            budgets.read("absent.json")

    def test_the_shipped_ones(self):
        shipped = budgets.read(Path(__file__).parents[2] / "bench/budgets.json")
        for bits, limit in ((2, 0.6), (3, 0.75), (4, 0.66), (8, 0.55)):
            kernel = {"name": "k", "arch": "a", "kind": "gemv_qk", "along": "row",
                      "levels": "uniform", "tile": 32, "bits": bits, "head_dim": 128, "gqa": 8,
                      "registers": 128, "shfl": 0, "i2f": 0, "f2i": 0, "f2f": 0, "rcp": 0,
                      "calls": 0, "barriers": 0,
                      "inner_loops": 0,
                      "movm_per_tile": 4, "f2fp_per_tile": 4, "narrow_code_bytes": 0,
                      "instructions_per_token": 11, "integer_ops_per_code": limit}
            self.assertEqual(budgets.broken([kernel], shipped), [])
            worse = kernel | {"registers": 129, "shfl": 1, "instructions_per_token": 11.5,
                              "integer_ops_per_code": limit + 0.01}
            self.assertEqual(len(budgets.broken([worse], shipped)), 4)

    def test_the_shipped_ones_of_attention(self):
        shipped = budgets.read(Path(__file__).parents[2] / "bench/budgets.json")
        zeros = dict.fromkeys(("shfl", "i2f", "f2i", "f2f", "rcp", "calls", "barriers",
                               "inner_loops", "narrow_code_bytes"), 0)
        kernel = zeros | {
            "name": "k", "arch": "a", "kind": "attention", "k_bits": 3, "k_along": "row",
            "k_levels": "uniform", "v_bits": 2, "v_along": "row", "v_levels": "uniform",
            "along": "row", "levels": "uniform", "window": "half", "head_dim": 128,
            "value_dim": 128, "tile": 32, "gqa": 8, "registers": 128, "movm_per_tile": 4,
            "f2fp_per_tile": 4, "instructions_per_token": 11, "integer_ops_per_code": 0.675}
        self.assertEqual(budgets.broken([kernel], shipped), [])
        worse = kernel | dict.fromkeys(zeros, 1) | {
            "registers": 129, "movm_per_tile": 5, "f2fp_per_tile": 5,
            "instructions_per_token": 16, "integer_ops_per_code": 0.8}
        self.assertEqual(len(budgets.broken([worse], shipped)), len(zeros) + 5)
