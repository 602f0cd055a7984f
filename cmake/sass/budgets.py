# SPDX-License-Identifier: Apache-2.0
"""Compares kernels with budgets: a list of objects whose keys `max_FIELD` are limits on the field
FIELD and whose other keys choose kernels: the field must equal the value, or one of a list. A
`note` tells readers why a limit is what it is."""

import json
import sys

_LIMIT = "max_"


def read(path):
    """The budgets in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            budgets = json.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"sass: {path}: {error}")
    if not isinstance(budgets, list) or not all(isinstance(x, dict) for x in budgets):
        sys.exit(f"sass: {path}: budgets are a list of objects")
    for budget in budgets:
        for key, value in budget.items():
            if key.startswith(_LIMIT) and type(value) not in (int, float):
                sys.exit(f"sass: {path}: {key} is a number, not {json.dumps(value)}")
    return budgets


def _chooses(budget, kernel):
    return all(kernel.get(key) in (value if isinstance(value, list) else [value])
               for key, value in budget.items() if not key.startswith(_LIMIT) and key != "note")


def broken(kernels, budgets):
    """One sentence for each limit that a kernel breaks. A limit on what could not be counted, or on
    a field that does not exist, is broken, as it would never fail."""
    lines = []
    for kernel in kernels:
        where = f"{kernel['name']} {kernel['arch']}"
        for budget in budgets:
            for key, limit in budget.items() if _chooses(budget, kernel) else ():
                if not key.startswith(_LIMIT):
                    continue
                field = key[len(_LIMIT):]
                value = kernel.get(field)
                if value is None or value > limit:
                    found = "could not be counted" if value is None else f"is {value:.4g}"
                    lines.append(f"{where}: {field} {found}, at most {limit:g} allowed")
    return lines


def in_memory(kernels):
    """One sentence for each kernel with values in local memory: none may have any."""
    return [f"{k['name']} {k['arch']}: {k['spill_bytes']} bytes of spills, {k['local_bytes']} bytes"
            f" of local memory, {k['local_accesses']} accesses to it; none are allowed"
            for k in kernels if k["spill_bytes"] or k["local_bytes"] or k["local_accesses"]]
