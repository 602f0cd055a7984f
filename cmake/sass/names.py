# SPDX-License-Identifier: Apache-2.0
"""What the name of a kernel says about it: the only place that knows how kernels are named."""

import re

_KERNEL = re.compile(r"(?P<kind>attention|gemv_qk|gemv_pv|encode|decode|repack)_(?:\w+_)?kernel$")
_NUMBER = re.compile(r"(?:\([\w ]+\))?(-?\d+)[ul]*$")  # as c++filt writes it: 3, 3u, 3ul, (type)3
_AXES = ("row", "channel", "token")
_LEVELS = ("uniform", "zero", "hybrid", "table")
_PLAIN = {"bits": 16, "along": "row", "levels": "plain"}


def split(name):
    """`name<a, b<c>>` -> ("name", ["a", "b<c>"])."""
    base, bracket, rest = name.partition("<")
    arguments, depth = [""], 0
    for character in rest[:-1]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += character
    return base, [x.strip() for x in arguments] if bracket else []


def _number(text):
    found = _NUMBER.match(text)
    return int(found.group(1)) if found else None


def _format(text):
    """What a template argument says of the codes: `coded_format<bits, axis, levels, scale, group>`,
    `plain_format<type>` or, as GEMV has it, the type of plain rows."""
    base, arguments = split(text)
    if base == "coded_format":
        bits, along, levels = map(_number, arguments[:3])
        return {"bits": bits, "along": _AXES[along], "levels": _LEVELS[levels]}
    return _PLAIN if base in ("plain_format", "half", "bfloat16") else None


def fields(shortened_name):
    """The fields that the name gives: `kind`, always, and those of the kernels that read codes:
    for keys and values `k_bits`, `k_along`, `k_levels` and `v_...`, and where both have the same
    `bits`, `along`, `levels`; `head_dim` (of keys where both are read), `tile` (tokens that a
    lane's words hold) and `gqa` (query heads of a KV head that a warp serves at most); of attention
    the type of its `window` and the `value_dim` too."""
    base, arguments = split(shortened_name)
    found = _KERNEL.match(base)
    if base.endswith("_merge_kernel") or not found:
        return {"kind": re.sub(r"_kernel$", "", base) or "other"}
    kind = found.group("kind")
    result = {"kind": kind}
    if kind == "attention":
        return result | _attention(split(arguments[0])[1])
    formats = list(filter(None, map(_format, arguments)))
    numbers = [x for x in map(_number, arguments) if x is not None]
    if not formats or not numbers:
        return result
    result |= _sides({"gemv_qk": "k", "gemv_pv": "v"}.get(kind, "kv"), formats)
    result["head_dim"], *middle, tiles = numbers
    return result | {"tile": middle[0] if middle else 16, "gqa": 8 * tiles}


def _sides(planes, formats):
    """The fields of each plane, and those in which all are the same."""
    result = {f"{plane}_{key}": value for plane, of in zip(planes, formats)
              for key, value in of.items()}
    return result | {key: value for key, value in formats[0].items()
                     if all(of[key] == value for of in formats)}


def _attention(shape):
    """Of `attention_shape<keys, values, window, head_dim of K, of V, block, column tiles>`."""
    keys, values, window, *numbers = shape
    head_dim, value_dim, block, tiles = map(_number, numbers)
    return _sides("kv", [_format(keys), _format(values)]) | {
        "window": window, "head_dim": head_dim, "value_dim": value_dim, "tile": block,
        "gqa": 8 * tiles}


def shortened(demangled):
    """Without return type, parameters and namespaces."""
    name = re.sub(r"\(anonymous namespace\)::|\b\w+::", "", demangled)
    name = re.sub(r"^void ", "", name)
    depth = 0
    for at, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            return name[:at]
    return name
