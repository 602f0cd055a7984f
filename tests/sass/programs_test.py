# SPDX-License-Identifier: Apache-2.0
"""Which compiler is taken and when it runs, with scripts in its place."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import cubins
import toolchain


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def script(self, name, body):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def found(self):
        with mock.patch.dict(os.environ, PATH=f"{self.root}/path"), \
                mock.patch.object(toolchain, "TOOLKIT", self.root / "toolkit"), \
                mock.patch.object(toolchain, "_from_pypi", lambda *_: "from PyPI"):
            return toolchain.nvcc(self.root)

    def test_a_compiler_of_version_13_is_taken_wherever_it_is(self):
        self.assertEqual(self.found(), "from PyPI")
        self.script("path/nvcc", "echo Cuda compilation tools, release 12.4, V12.4.131")
        self.assertEqual(self.found(), "from PyPI")
        toolkit = self.script("toolkit/nvcc", "echo Cuda compilation tools, release 13.0, V13.0.88")
        self.assertEqual(self.found(), str(toolkit))
        on_path = self.script("path/nvcc", "echo Cuda compilation tools, release 13.1, V13.1.80")
        self.assertEqual(self.found(), str(on_path))

    def test_only_what_is_older_than_its_sources_is_compiled(self):
        # The last argument is the output, as compile_to_cubin passes it.
        runs = self.root / "runs"
        nvcc = self.script("nvcc", f"echo run >>{runs}\nfor x; do :; done\n"
                                   'echo code >"$x"; echo said')
        source = self.root / "gemv.cu"
        source.write_text("")
        headers = 0

        def compiled(arch="sm_80"):
            before = runs.read_text().count("run") if runs.exists() else 0
            cubin, said = cubins.compile_to_cubin(str(nvcc), source, arch, self.root, headers)
            self.assertEqual(cubin.read_text(), "code\n")
            self.assertTrue(said.endswith("said\n"))
            return runs.read_text().count("run") - before

        self.assertEqual([compiled(), compiled()], [1, 0])
        self.assertEqual([compiled("sm_90"), compiled("sm_90"), compiled()], [1, 0, 0])
        later = source.stat().st_mtime + 100
        headers = later
        self.assertEqual(compiled(), 1)
        headers = 0
        self.assertEqual(compiled(), 0)
        os.utime(source, (later, later))
        self.assertEqual(compiled(), 1)
        os.utime(source, (0, 0))
        with mock.patch.object(cubins, "FLAGS", ["-O0"]):
            self.assertEqual([compiled(), compiled()], [1, 0])

    def test_a_failed_compilation_leaves_nothing_to_reuse(self):
        source = self.root / "gemv.cu"
        source.write_text("")
        compile_now = lambda headers: cubins.compile_to_cubin(
            f"{self.root}/nvcc", source, "sm_80", self.root, headers)
        self.script("nvcc", 'for x; do :; done; echo code >"$x"')
        compile_now(0)
        self.script("nvcc", 'for x; do :; done; echo half >"$x"; echo a fault >&2; exit 1')
        for headers in (source.stat().st_mtime + 100, 0):
            with self.assertRaisesRegex(SystemExit, "a fault"):
                compile_now(headers)
