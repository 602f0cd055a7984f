# SPDX-License-Identifier: Apache-2.0
"""What the name of a kernel says about it: the only place that knows how kernels are named."""

import re

_N = r"(?:\(\w+\))?(?P<{}>\d+)[ul]*"  # a number as c++filt writes it: 3, 3u, 3ul, (type)3
# codec<midrise<3>, ...>, codec<int8_head, ...> or identity<half>
_KEYS = r"(?:codec<)?(?P<k_codec>\w+)(?:<" + _N.format("k_bits") + r"\b)?"
_VALUES = _KEYS.replace("<k_", "<v_")
_END = ", " + ", ".join(map(_N.format, ("head_dim", "tile", "gqa"))) + ">$"

# The first pattern that a shortened name matches decides. Its groups become fields of the kernel,
# numbers as integers: kind, k_codec, v_codec, k_bits, v_bits, head_dim, tile (tokens) and gqa. The
# template arguments are the codecs, then the numbers of _END; `.*` skips the rest of a codec.
PATTERNS = [re.compile(pattern) for pattern in (
    rf"(?P<kind>attention)_kernel<{_KEYS}.*?>, {_VALUES}.*{_END}",
    rf"(?P<kind>gemv_qk)_kernel<{_KEYS}.*{_END}",
    rf"(?P<kind>gemv_pv)_kernel<{_VALUES}.*{_END}",
    rf"(?P<kind>encode|decode|repack)_kernel<{_KEYS}.*>, {_N.format('head_dim')}\b",
    r"(?P<kind>\w+?)(?:_kernel)?\b",
)]
BITS = {"int8_head": 8, "identity": 16}  # of the codecs that have none among their arguments


def fields(shortened_name):
    """The fields that the name gives; `kind` is always there."""
    found = next(filter(None, (pattern.match(shortened_name) for pattern in PATTERNS)), None)
    if found is None:
        return {"kind": "other"}
    result = {key: int(value) if value.isdigit() else value
              for key, value in found.groupdict().items() if value is not None}
    for plane in "kv":
        codec = result.get(f"{plane}_codec")
        if codec in BITS:
            result.setdefault(f"{plane}_bits", BITS[codec])
    if result.get("k_bits", result.get("v_bits")) == result.get("v_bits", result.get("k_bits")):
        result |= {"bits": result[key] for key in ("k_bits", "v_bits") if key in result}
    return result


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
