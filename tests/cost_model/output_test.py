# SPDX-License-Identifier: Apache-2.0
"""What the program reads and writes, and that it knows all presets."""

import contextlib
import io
import json
import re
import runpy
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import presets

ROOT = Path(__file__).parents[2]


def kernel(preset, arch):
    return {"name": preset.kernel_names[0], "arch": arch, "registers": 128,
            "loop_instructions": 352, "mma": 34, "tokens_per_iteration": 32.0,
            "instructions_per_token": 11.0}


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.counts, self.csv = Path(folder.name, "counts.json"), Path(folder.name, "out.csv")

    def run_on(self, text):
        self.counts.write_text(text)
        out = io.StringIO()
        arguments = ["cost_model", str(self.counts), "--csv", str(self.csv)]
        with mock.patch("sys.argv", arguments), contextlib.redirect_stdout(out):
            runpy.run_path(str(ROOT / "bench/cost_model/__main__.py"), run_name="__main__")
        return out.getvalue()

    def run_kernels(self, kernels):
        return self.run_on(json.dumps({"kernels": kernels}))

    def test_every_name_of_a_preset_has_lines(self):
        chosen = [x for x in presets.PRESETS if {"fp16", "kivi"} & set(x.names)]
        page = self.run_kernels([kernel(x, "sm_90") for x in chosen])
        lines = self.csv.read_text().splitlines()
        self.assertEqual(lines[0], "preset,arch,tokens,batch,microseconds")
        names = [line.split(",")[0] for line in lines[1:]]
        self.assertEqual({x: names.count(x) for x in names},
                         {"fp16": 15, "kivi": 15, "kivi_sink": 15})
        self.assertTrue(all(re.fullmatch(r"\w+,sm_90,\d+,\d+,\d+\.\d\d", x) for x in lines[1:]))
        self.assertIn("## H200 (sm_90)", page)
        self.assertNotIn("A100", page)
        self.assertIn(" 1.00x ", next(x for x in page.splitlines() if x.startswith("| fp16 ")))

    def test_counts_that_do_not_serve(self):
        row = kernel(presets.PRESETS[-1], "sm_90")
        for text, said in (("", "not what"), ("[]", "not what"), ('{"kernels": [{}]}', "not what"),
                           (json.dumps({"kernels": [row]}), "no attention on 16-bit rows")):
            with self.assertRaisesRegex(SystemExit, said):
                self.run_on(text)


class Presets(unittest.TestCase):
    def test_they_are_those_of_the_library(self):
        # The bits that the library reports, scales included; see the command in that file.
        table = (ROOT / "bench/results/effective_bits.md").read_text().split("Presets:")[1]
        reported = {x[0]: (float(x[1]), float(x[2])) for x in re.findall(
            r"^(\w+) +(\d+\.\d+) +(\d+\.\d+) +\d+\.\d+ ", table, re.MULTILINE)}
        windows = {name: int(a) + int(b) for name, a, b in re.findall(
            r"^(\w+) .* (\d+) \+ (\d+) ", table, re.MULTILINE)}
        mine = {name: x for x in presets.PRESETS for name in x.names}
        self.assertEqual(set(mine), set(reported))
        for name, x in mine.items():
            bits = tuple(8 * side.token_bytes() / 128 for side in (x.keys, x.values))
            self.assertEqual((bits, x.windows), (reported[name], windows[name]), name)
