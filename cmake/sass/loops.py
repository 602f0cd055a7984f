# SPDX-License-Identifier: Apache-2.0
"""The loops of a kernel: basic blocks, dominators, natural loops and the path through each loop."""

from dataclasses import dataclass


@dataclass
class Loop:
    """`blocks` are numbers of basic blocks; `latches` are those that jump back to the header."""

    header: int
    latches: set
    blocks: set


class Graph:
    """The control flow of a Function from its entry and from those of the subroutines that it
    calls. A call goes on behind itself, an indirect branch goes nowhere."""

    def __init__(self, function):
        code = function.instructions
        starts = {0} | {at for at in function.labels.values() if at < len(code)}
        starts |= {i + 1 for i, x in enumerate(code[:-1]) if x.ends_block}
        starts = sorted(starts) if code else []
        ends = starts[1:] + [len(code)]
        self.blocks = [code[a:b] for a, b in zip(starts, ends)]
        self._block_at = {start: number for number, start in enumerate(starts)}
        self._starts = starts
        self._function = function
        successors = [self._successors(number) for number in range(len(self.blocks))]
        entries = [function.labels.get(x.target) for x in code if x.calls]
        entries = [0, *(self._block_at[e] for e in entries if e in self._block_at)] if code else []
        self._entries = set(entries)
        self.order = _reverse_postorder(successors, entries)
        reachable = set(self.order)
        self.successors = {b: successors[b] for b in self.order}
        self.predecessors = {b: [] for b in self.order}
        for block in reachable:
            for successor in successors[block]:
                self.predecessors[successor].append(block)
        self._dominators = self._find_dominators()

    def _successors(self, number):
        following = [number + 1] if number + 1 < len(self.blocks) else []
        last = self.blocks[number][-1]
        if not last.ends_block or last.never_runs:
            return following
        if last.base == "BSYNC":
            target = self._meeting_point(number)
            conditional = bool(last.guard)
        else:
            target = self._function.labels.get(last.target)
            conditional = last.conditional if last.target else bool(last.guard)
        goes_to = [self._block_at[target]] if target in self._block_at else []
        return goes_to + [x for x in following if conditional and x not in goes_to]

    def _meeting_point(self, number):
        """Where the threads go on that a BSYNC has waited for: the label of its BSSY, as a rule
        that behind the BSYNC, else that of the nearest BSSY before it."""
        behind = self._starts[number] + len(self.blocks[number])
        barrier = self.blocks[number][-1].operands.split(",")[0].strip()
        nearest = behind
        for at, x in enumerate(self._function.instructions):
            if x.base == "BSSY" and x.operands.split(",")[0].strip() == barrier:
                target = self._function.labels.get(x.target, behind)
                if target == behind:
                    return behind
                if at < behind:
                    nearest = target
        return nearest

    def _find_dominators(self):
        """Sets of blocks as the bits of integers."""
        dominators = {b: -1 for b in self.order}
        changed = True
        while changed:
            changed = False
            for block in self.order:
                bits = 0 if block in self._entries else -1
                for predecessor in self.predecessors[block]:
                    bits &= dominators[predecessor]
                bits |= 1 << block
                changed |= bits != dominators[block]
                dominators[block] = bits
        return dominators

    def _is_back_edge(self, tail, head):
        return bool(self._dominators[tail] >> head & 1)

    def loops(self):
        """The natural loops, one for each header."""
        found = {}
        for tail in self.order:
            for head in self.successors[tail]:
                if self._is_back_edge(tail, head):
                    loop = found.setdefault(head, Loop(head, set(), {head}))
                    loop.latches.add(tail)
                    self._add_body(loop, tail)
        return list(found.values())

    def _add_body(self, loop, latch):
        pending = [latch]
        while pending:
            block = pending.pop()
            if block not in loop.blocks:
                loop.blocks.add(block)
                pending += self.predecessors[block]

    def straight_path(self, loop, worth):
        """The blocks of the common way once around the loop: of all ways the one with the largest
        sum of worth(code of a block), which is a tuple."""
        sums, came_from = {}, {loop.header: None}
        for block in self.order:
            if block not in loop.blocks:
                continue
            own = worth(self.blocks[block])
            before = [p for p in self.predecessors[block] if p in sums]
            if block == loop.header:
                sums[block] = own
            elif before:
                came_from[block] = max(before, key=sums.get)
                sums[block] = tuple(map(sum, zip(own, sums[came_from[block]])))
        block = max(loop.latches & sums.keys(), key=sums.get)
        path = []
        while block is not None:
            path.append(block)
            block = came_from[block]
        return path[::-1]


def _reverse_postorder(successors, entries):
    order, seen = [], set()
    for entry in entries:
        pending = [(entry, iter(successors[entry]))] if entry not in seen else []
        seen.add(entry)
        while pending:
            block, rest = pending[-1]
            following = next((x for x in rest if x not in seen), None)
            if following is None:
                order.append(block)
                pending.pop()
            else:
                seen.add(following)
                pending.append((following, iter(successors[following])))
    return order[::-1]
