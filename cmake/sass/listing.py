# SPDX-License-Identifier: Apache-2.0
"""Reads what nvdisasm -c prints: the instructions of every kernel in a cubin, in address order."""

import re
from dataclasses import dataclass, field

_SECTION = re.compile(r"\s*\.section\s+([^\s,]+)")
_LABEL = re.compile(r"([.$\w]+):\s*$")
_INSTRUCTION = re.compile(
    r"\s*/\*[0-9a-f]+\*/\s+(?:@(?P<guard>!?U?P\w+)\s+)?"
    r"(?P<op>[A-Z]\w*(?:\.\w+)*)(?P<rest>[^;]*);")
_JUMPS = {"BRA", "JMP", "BRX", "JMX", "RET", "EXIT", "KILL", "BSYNC"}
_TARGET = re.compile(r"`\(([^)]+)\)")


@dataclass(frozen=True)
class Instruction:
    """One instruction; `guard` is its predicate (`P0`, `!UP1`), empty where it has none."""

    op: str
    operands: str = ""
    guard: str = ""

    @property
    def base(self):
        return self.op.split(".")[0]

    @property
    def modifiers(self):
        return self.op.split(".")[1:]

    @property
    def never_runs(self):
        """The compiler pads with such instructions; they take an issue slot and do nothing."""
        return self.guard in ("!PT", "!UPT")

    @property
    def target(self):
        """The label that the instruction names, or None."""
        found = _TARGET.search(self.operands)
        return found.group(1) if found else None

    @property
    def calls(self):
        """Whether it calls a subroutine. A call of a local label is a far jump, never returned."""
        return self.base == "CALL" and not (self.target or "").startswith(".L")

    @property
    def ends_block(self):
        return self.base in _JUMPS or self.base == "CALL" and not self.calls

    @property
    def conditional(self):
        """Guarded, or a branch on a second predicate, as `BRA.DIV ~URZ, LABEL` is."""
        return bool(self.guard) or bool(self.operands.split("`")[0].strip())


@dataclass
class Function:
    """The code of one section: a kernel, then the subroutines that the compiler added to it."""

    name: str
    instructions: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)  # label -> index of the instruction that follows


def parse(text):
    """The functions in a listing, in its order."""
    functions = []
    current = None
    for line in text.splitlines():
        if section := _SECTION.match(line):
            name = section.group(1)
            current = Function(name[len(".text."):]) if name.startswith(".text.") else None
            if current:
                functions.append(current)
        elif current is None:
            continue
        elif label := _LABEL.match(line):
            current.labels[label.group(1)] = len(current.instructions)
        elif found := _INSTRUCTION.match(line):
            current.instructions.append(
                Instruction(found["op"], found["rest"].strip(), found["guard"] or ""))
    return functions
