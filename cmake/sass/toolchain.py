# SPDX-License-Identifier: Apache-2.0
"""The CUDA 13 programs: those of an installed toolkit, else from PyPI in build/sass/tools."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOOLKIT = Path("/usr/local/cuda/bin")
_COMPILER = [f"nvidia-{part}==13.0.*" for part in
             ("cuda-nvcc", "cuda-crt", "cuda-runtime", "cuda-cccl", "nvvm")]
# 13.2 is the first on PyPI and reads what 13.0 compiles.
_DISASSEMBLER = ["nvidia-cuda-nvdisasm==13.2.*"]


def nvcc(build):
    """The path of an nvcc of version 13."""
    return _find("nvcc", r"release 13\.", build, _COMPILER)


def nvdisasm(build):
    """The path of an nvdisasm of version 13."""
    return _find("nvdisasm", r"release 13\.", build, _DISASSEMBLER)


def _find(program, version, build, packages):
    for path in (shutil.which(program), TOOLKIT / program):
        if path and os.access(path, os.X_OK) and re.search(version, _output(path, "--version")):
            return str(path)
    return _from_pypi(program, build / "tools", packages)


def _from_pypi(program, folder, packages):
    pattern = f"lib/python3*/site-packages/nvidia/*/bin/{program}"
    if not any(folder.glob(pattern)):
        print(f"Installing {program} from PyPI in {folder}", file=sys.stderr)
        if not (folder / "bin/pip").exists():
            _run(sys.executable, "-m", "venv", folder)
        _run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    found = next(folder.glob(pattern), None)
    if found is None:
        sys.exit(f"sass: {' '.join(packages)} brought no {program}")
    return str(found)


def _run(*command):
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sass: failed: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def _output(*command):
    return subprocess.run([str(x) for x in command], capture_output=True, text=True).stdout
