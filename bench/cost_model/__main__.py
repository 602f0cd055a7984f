# SPDX-License-Identifier: Apache-2.0
"""Predicts decode attention; see cmake/dev.sh cost and model.py. Needs no GPU."""

import argparse
import json
import sys
from pathlib import Path

import model
import report
from parts import PARTS
from presets import PRESETS, ROWS_16


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/cost_model",
        description="Predicts microseconds of decode attention of a layer from what cmake/dev.sh"
                    " sass counted.")
    parser.add_argument("counts", type=Path, help="what cmake/dev.sh sass --json wrote")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="instead of standard output")
    parser.add_argument("--csv", metavar="FILE", type=Path,
                        help="write preset,arch,tokens,batch,microseconds")
    return parser.parse_args()


def read(path):
    """(kernel's name, architecture) -> its fields."""
    try:
        kernels = json.loads(path.read_text(encoding="utf-8"))["kernels"]
        return {(x["name"], x["arch"]): x for x in kernels if x["instructions_per_token"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"cost_model: {path} is not what cmake/dev.sh sass --json writes: {error!r}")


def serving(kernels, preset, part):
    """The kernel of a preset on a part, or None."""
    found = (kernels.get((name, part.arch)) for name in preset.kernel_names)
    return next(filter(None, found), None)


def served_by(kernels):
    """For each part its (preset, kernel, Occupancy); without a kernel for 16-bit rows none."""
    result = {}
    for part in PARTS:
        if serving(kernels, ROWS_16, part) is None:
            continue
        found = ((preset, serving(kernels, preset, part)) for preset in PRESETS)
        result[part] = [(preset, kernel, model.occupancy(part, preset, kernel))
                        for preset, kernel in found if kernel]
    return result


def predictions(kernels, served):
    """(preset, part, tokens, batch, Prediction) of all."""
    for part, presets in served.items():
        rows = model.cost(ROWS_16, serving(kernels, ROWS_16, part))
        for preset, kernel, resident in presets:
            coded = model.cost(preset, kernel)
            for tokens in report.TOKENS:
                for batch in report.BATCHES:
                    of = model.predict(part, coded, rows, resident, preset.windows, tokens, batch)
                    yield preset, part, tokens, batch, of


def main():
    options = arguments()
    kernels = read(options.counts)
    served = served_by(kernels)
    if not served:
        sys.exit(f"cost_model: {options.counts} has no attention on 16-bit rows of head_dim 128")
    rows = list(predictions(kernels, served))
    page = report.markdown(rows, served, ROWS_16)
    if options.markdown:
        options.markdown.write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    if options.csv:
        options.csv.write_text(report.csv(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
