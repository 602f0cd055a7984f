# SPDX-License-Identifier: Apache-2.0
"""Prints what the kernels cost in machine code; see cmake/dev.sh sass --help. Needs no GPU."""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import budgets
import counts
import cubins
import listing
import names
import report
import toolchain

ARCHITECTURES = ("sm_80", "sm_90")
BUILD = Path("build/sass")


def arguments():
    parser = argparse.ArgumentParser(
        prog="cmake/dev.sh sass",
        description="Compiles the kernels and counts their instructions: those on the common way"
                    " around the main loop; `rare` are those that a branch skips."
                    " Fails when a kernel spills or uses local memory.")
    parser.add_argument("sources", nargs="*", type=Path, help="default: all of kernels/instances")
    parser.add_argument("--arch", action="append", help="as sm_120, more than once for more;"
                        " default: sm_80 and sm_90")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all that was counted")
    parser.add_argument("--check", metavar="FILE", help="fail on a broken budget, as those in"
                        " bench/budgets.json")
    parser.add_argument("--report", metavar="FILE", type=Path, help="write the kernels of head_dim"
                        " 128, the notes of the budgets and the limits that are broken as Markdown")
    parser.add_argument("-D", dest="defines", metavar="SHAPES", action="append", default=[],
                        help="compile for fewer shapes, as KVARTS_HEAD_DIMS=64,128;"
                        " see kernels/kvarts/kernels/shapes.cuh")
    return parser.parse_args()


def definitions(chosen):
    """The compiler's flags for the shapes: those that kvarts::cuda has unless chosen."""
    shapes = {"KVARTS_CHANNEL_GROUPS": "32"} | dict(x.partition("=")[::2] for x in chosen)
    # nvcc splits a value at plain commas.
    return [f"-D{name}={value}".replace(",", "\\,") for name, value in shapes.items()]


def demangle(mangled):
    """The names that c++filt gives them, in the same order."""
    done = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True,
                          check=True)
    return done.stdout.splitlines()


def kernels_of(cubin, ptxas_output, arch, nvdisasm):
    """One dictionary of fields for each kernel in a cubin."""
    done = subprocess.run([nvdisasm, "-c", cubin], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sass: failed: {nvdisasm} -c {cubin}\n{done.stderr}")
    functions = {f.name: f for f in listing.parse(done.stdout)}
    used = cubins.resources(ptxas_output)
    entries = [name for name in used if name in functions]
    result = []
    for mangled, demangled in zip(entries, demangle(entries)):
        name = names.shortened(demangled)
        kernel = {"name": name, "arch": arch} | names.fields(name) | used[mangled]
        result.append(kernel | counts.fields(functions[mangled], kernel))
    return result


def all_kernels(sources, architectures, flags):
    BUILD.mkdir(parents=True, exist_ok=True)
    nvcc, nvdisasm = toolchain.nvcc(BUILD), toolchain.nvdisasm(BUILD)
    changed = cubins.newest_header()

    def work(job):
        source, arch = job
        cubin, said = cubins.compile_to_cubin(nvcc, source, arch, BUILD, changed, flags)
        return kernels_of(cubin, said, arch, nvdisasm)

    jobs = [(source, arch) for source in sources for arch in architectures]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # A kernel that more than one source holds counts once.
        kernels = {(kernel["kind"], kernel["name"], kernel["arch"]): kernel
                   for found in pool.map(work, jobs) for kernel in found}
    return [kernels[key] for key in sorted(kernels)]


COLUMNS = {  # heading -> the cell of a kernel
    "arch": lambda k: k["arch"][3:],
    "regs": lambda k: k["registers"],
    "shared": lambda k: k["shared_bytes"],
    "spill": lambda k: k["spill_bytes"],
    "local": lambda k: k["local_bytes"],
    "loop": lambda k: k["loop_instructions"],
    "rare": lambda k: f"{k['rare_instructions']}" + f" ({k['rare_mma']} mma)" * bool(k["rare_mma"]),
    "tokens": lambda k: k["tokens_per_iteration"],
    "instr/token": lambda k: k["instructions_per_token"],
    "int/code": lambda k: k["integer_ops_per_code"],
    "int": lambda k: k["integer_ops"],
    "iadd+imad": lambda k: k["iadd"] + k["imad"],
    "mma": lambda k: k["mma"],
    "shfl": lambda k: k["shfl"],
    "cvt": lambda k: k["i2f"] + k["f2i"] + k["f2f"],
    "f2fp": lambda k: k["f2fp"],
    "movm": lambda k: k["movm"],
    "mufu": lambda k: k["mufu"],
    "bar": lambda k: k["barriers"],
    "global loads": lambda k: widths(k["global_loads"]),
    "async": lambda k: widths(k["async_copies"]),
    "shared loads": lambda k: widths(k["shared_loads"]),
}


def widths(loads):
    """4x128+2x16: four loads of 128 bits a lane and two of 16."""
    return "+".join(f"{number}x{bits}" for bits, number in loads.items()) or "-"


def cell(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def print_table(kernels):
    rows = [["kernel", *COLUMNS]]
    rows += [[k["name"], *(cell(column(k)) for column in COLUMNS.values())] for k in kernels]
    room = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [text.rjust(room[i]) if i else text.ljust(room[i]) for i, text in enumerate(row)]
        print("  ".join(cells).rstrip())


def main():
    options = arguments()
    limits = budgets.read(options.check) if options.check else []
    sources = options.sources or sorted(Path("kernels/instances").rglob("*.cu"))
    if not sources:
        sys.exit("sass: there is no .cu in kernels/instances")
    kernels = all_kernels(sources, options.arch or ARCHITECTURES, definitions(options.defines))
    if not kernels:
        sys.exit("sass: no kernel was compiled")
    print_table(kernels)
    if options.json:
        options.json.write_text(json.dumps({"kernels": kernels}, indent=1) + "\n", encoding="utf-8")
    faults = budgets.in_memory(kernels) + budgets.broken(kernels, limits)
    if options.report:
        options.report.write_text(report.text(kernels, limits, faults), encoding="utf-8")
    for fault in faults:
        print(fault, file=sys.stderr)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
