# SPDX-License-Identifier: Apache-2.0
"""What the kernels cost, as a page of Markdown."""

_HEAD = """# What the kernels cost in machine code

Written by `cmake/dev.sh sass -D KVARTS_HEAD_DIMS=128 -D KVARTS_BLOCKS=32 -D
KVARTS_WINDOW_TYPES=half --check bench/budgets.json --report bench/results/sass.md`; counted in the
main loops of the shipped kernels, without a GPU. Nothing here was timed.

All kernels of this build: {number}, of which {spilling} spill registers or use local memory.
Below those of head_dim 128 and blocks of 32 tokens (q.K and p.V of plain rows: 16), attention with
windows of half. Counted is the shortest way around the loop that does its work: what branches skip
(`skipped`: rescaling, soft cap, hiding of tokens, looking up pages and rows) is left out. `heads`
is how many query heads of a KV head a warp serves at once; `int/code` are LOP3, SHF and PRMT for
each code; `f2fp` are conversions of two numbers to half and `movm` transposes for 32 tokens and 8
heads.
"""
_KINDS = {"gemv_qk": "q.K", "gemv_pv": "p.V"}
_COLUMNS = {
    "product": lambda k: _KINDS.get(k["kind"], k["kind"]),
    "bits": lambda k: k.get("bits", f"{k.get('k_bits')}/{k.get('v_bits')}"),
    "scales along": lambda k: k.get("along", f"{k.get('k_along')}/{k.get('v_along')}"),
    "levels": lambda k: k.get("levels", f"{k.get('k_levels')}/{k.get('v_levels')}"),
    "type": lambda k: next((t for t in ("bfloat16", "float", "half") if t in k["name"]), ""),
    "heads": lambda k: k["gqa"],
    "arch": lambda k: k["arch"],
    "registers": lambda k: k["registers"],
    "spills": lambda k: k["spill_bytes"],
    "instructions/token": lambda k: k["instructions_per_token"],
    "skipped": lambda k: k["rare_instructions"],
    "int/code": lambda k: k["integer_ops_per_code"],
    "shfl": lambda k: k["shfl"],
    "f2fp": lambda k: k["f2fp_per_tile"],
    "movm": lambda k: k["movm_per_tile"],
}


def _cell(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _row(cells):
    return f"| {' | '.join(cells)} |"


def _choice(budget):
    """The kernels that a budget chooses, in words."""
    words = [_words(budget[key]) for key in ("levels", "along") if key in budget]
    for side in "kv":
        its = [_words(budget[f"{side}_{key}"]) for key in ("bits", "levels", "along")
               if f"{side}_{key}" in budget]
        words += [f"{side.upper()} {' '.join(its)}"] if its else []
    bits = f", {budget['bits']} bits" if "bits" in budget else ""
    kinds = budget["kind"] if isinstance(budget["kind"], list) else [budget["kind"]]
    arch = f", {budget['arch']}" if "arch" in budget else ""
    return f"{' and '.join(_KINDS.get(k, k) for k in kinds)} of {', '.join(words)}{bits}{arch}"


def _words(value):
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _is_shown(kernel):
    gemv_rows = kernel.get("levels") == "plain" and kernel["kind"] in _KINDS
    same = kernel.get("window") != "bfloat16" or kernel.get("levels") == "plain"
    return kernel.get("head_dim") == 128 and kernel["tile"] == (16 if gemv_rows else 32) and same


def text(kernels, limits, faults):
    """The page. `faults` are the sentences about broken limits."""
    spilling = sum(bool(k["spill_bytes"] or k["local_bytes"]) for k in kernels)
    lines = [_HEAD.format(number=len(kernels), spilling=spilling), _row(_COLUMNS),
             _row("---" for _ in _COLUMNS)]
    lines += [_row(_cell(column(k)) for column in _COLUMNS.values())
              for k in filter(_is_shown, kernels)]
    lines += ["", "## Budgets", "", "Limits are in bench/budgets.json. Higher than designed are:",
              ""]
    lines += [f"- {_choice(x)}: {x['note']}" for x in limits if "note" in x]
    lines += ["", *([f"- {fault}" for fault in faults] or ["No limit is broken."])]
    return "\n".join(lines) + "\n"
