# SPDX-License-Identifier: Apache-2.0
"""Writes listings as nvdisasm prints them from plain lines of instructions."""

import listing


def text(lines, name="kernel"):
    """A listing of one kernel. A line that ends with a colon is a label."""
    out = [f"\t.section\t.text.{name},\"ax\",@progbits", "\t.sectioninfo\t@\"SHI_REGISTERS=40\"",
           f"        .type           {name},@function", f".text.{name}:"]
    address = 0
    for line in filter(None, map(str.strip, lines.splitlines())):
        if line.endswith(":"):
            out.append(line)
            continue
        guard, rest = line.split(maxsplit=1) if line[0] == "@" else ("", line)
        out.append(f"        /*{address:04x}*/ {guard:>18} {rest} ;")
        address += 16
    return "\n".join(out) + "\n"


def function(lines):
    (found,) = listing.parse(text(lines))
    return found
