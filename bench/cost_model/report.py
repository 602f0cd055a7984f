# SPDX-License-Identifier: Apache-2.0
"""The predictions as CSV and as a page of Markdown."""

import model

TOKENS = (512, 2048, 8192, 32768, 131072)
BATCHES = (1, 8, 32)

_HEAD = """# What decode attention should take

Written by `cmake/dev.sh cost --markdown bench/results/cost_model.md`: predicted from the
[instructions](sass.md) of the compiled kernels and the bytes that presets store. Nothing here was
timed; these are the numbers to beat on a GPU. Formula, constants and their sources are in
[bench/cost_model](../cost_model).

One layer of {query_heads} query heads and {kv_heads} KV heads of head_dim 128 (GQA 4), one query
token. A cell has microseconds, how many times as fast as fp16 rows on the same part, and what most
of the time is spent on: **m**emory, **i**ssue slots, **t**ensor cores or **l**atency. `bytes` and
`instructions` are for a token of one KV head, in codes; `blocks` of 128 threads share a
multiprocessor, limited by registers or shared memory.
"""


def csv(rows):
    """`rows` are (preset, part, tokens, batch, Prediction); a line for each name of a preset."""
    lines = ["preset,arch,tokens,batch,microseconds"]
    lines += [f"{name},{part.arch},{tokens},{batch},{of.total:.2f}"
              for preset, part, tokens, batch, of in rows for name in preset.names]
    return "\n".join(lines) + "\n"


def _row(cells):
    return f"| {' | '.join(cells)} |"


def _cell(of, baseline):
    return f"{of.total:.1f} {baseline.total / of.total:.2f}x {of.limit[0]}"


def _table(part, served, at, baseline):
    heading = ["preset", "bytes", "instructions", "blocks", "batch", *map("{:,}".format, TOKENS)]
    lines = [_row(heading), _row("---" for _ in heading)]
    for preset, kernel, resident in served:
        for batch in BATCHES:
            cells = [_cell(at[preset, part, n, batch], at[baseline, part, n, batch])
                     for n in TOKENS]
            lines.append(_row([", ".join(preset.names), f"{preset.token_bytes:g}",
                               f"{kernel['instructions_per_token']:.1f}", str(resident.blocks),
                               str(batch), *cells]))
    return lines


def markdown(rows, served, baseline):
    """`served` has (preset, kernel, Occupancy) for each part; `baseline` is the preset of 16-bit
    rows."""
    at = {tuple(key): of for *key, of in rows}
    lines = [_HEAD.format(query_heads=model.QUERY_HEADS, kv_heads=model.KV_HEADS)]
    for part, presets in served.items():
        lines += [f"## {part.name} ({part.arch})", "",
                  f"{part.multiprocessors} multiprocessors at {part.clock_ghz:g} GHz,"
                  f" {part.gb_per_s:.0f} GB/s, {part.mma_clocks:.3g} clocks a tensor core"
                  f" instruction, {model.latency(part):.1f} us of latency.", "",
                  *_table(part, presets, at, baseline), ""]
    return "\n".join(lines)
