# SPDX-License-Identifier: Apache-2.0
"""Compiles a source for one architecture and reads what ptxas says about its kernels."""

import re
import subprocess
import sys
from pathlib import Path

FLAGS = ["-cubin", "-std=c++20", "--expt-relaxed-constexpr", "-O3", "-I", "include",
         "-I", "kernels", "-Xptxas=-v"]

_FUNCTION = re.compile(r"(?:Compiling entry function|Function properties for) '?([\w$.]+)")
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "local_bytes": re.compile(r"(\d+) bytes (?:stack frame|cumulative stack size)"),
}
_SPILLS = re.compile(r"(\d+) bytes spill (?:stores|loads)")


def newest_header():
    """When a header last changed; any of them may be in any kernel."""
    headers = [p for folder in ("include", "kernels") for p in Path(folder).rglob("*.*h*")]
    return max((p.stat().st_mtime for p in headers), default=0)


def compile_to_cubin(nvcc, source, arch, build, headers_changed, flags=()):
    """Returns (cubin, what ptxas printed); compiles only what is older than its sources or was
    compiled in another way."""
    cubin = build / f"{'_'.join(source.with_suffix('').parts).strip('/_')}.{arch}.cubin"
    log = cubin.with_suffix(".log")
    command = [nvcc, f"-arch={arch}", *FLAGS, *flags, str(source), "-o", str(cubin)]
    header = " ".join(command) + "\n"
    if cubin.exists() and log.exists():
        text = log.read_text()
        newest = max(source.stat().st_mtime, headers_changed)
        if text.startswith(header) and log.stat().st_mtime > newest:
            return cubin, text
    log.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sass: failed: {header}{done.stdout}{done.stderr}")
    text = header + done.stdout + done.stderr
    log.write_text(text)
    return cubin, text


def resources(ptxas_output):
    """Mangled name -> registers, shared_bytes (static), spill_bytes and local_bytes."""
    found = {}
    current = None
    for line in ptxas_output.splitlines():
        if name := _FUNCTION.search(line):
            current = found.setdefault(name.group(1), dict.fromkeys((*_NUMBERS, "spill_bytes"), 0))
        elif current is not None:
            for field, pattern in _NUMBERS.items():
                current[field] = max([current[field], *map(int, pattern.findall(line))])
            current["spill_bytes"] += sum(map(int, _SPILLS.findall(line)))
    return found
