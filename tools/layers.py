"""Prints how many nodes the graphs of layers have, beside the same layers written by hand.

    python -m tools.layers                                  # all that have more, on all targets
    python -m tools.layers --target tflite --layer 'conv*' --all
    python -m tools.layers --update                         # records the numbers

Layers are those of `harnesses.layers`. The exit code is 1 if one has more nodes than recorded, or
if a recorded one has no more than by hand; see `harnesses.layers.more_nodes`.
"""

import argparse
import collections
from collections.abc import Sequence
from fnmatch import fnmatchcase

from harnesses.layers import all_layers, counting, reasons
from harnesses.layers.reason import TARGETS
from tools.terminal import run


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=TARGETS)
    parser.add_argument("--layer", default="*", metavar="PATTERN", help="names of layers")
    parser.add_argument("--all", action="store_true", help="print layers without more nodes, too")
    parser.add_argument("--update", action="store_true", help="record the numbers of nodes")
    args = parser.parse_args(argv)
    recorded = reasons.recorded()
    problems = []
    for target in args.target:
        of_target = recorded.setdefault(target, {})
        for name, layer in all_layers().items():
            if not fnmatchcase(name, args.layer):
                continue
            ours, by_hand = counting.counts(layer, target)
            has_more = by_hand is not None and _total(ours) > _total(by_hand)
            if args.all or has_more:
                print(_line(name, target, ours, by_hand), flush=True)
            of_target.pop(name, None)
            if has_more:
                of_target[name] = _total(ours)
            problem = judged(name, target, ours, by_hand)
            if problem:
                problems.append(problem)
    if args.update:
        reasons.record(recorded)
        problems = reasons.problems()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def judged(
    name: str, target: str, ours: counting.Counts, by_hand: counting.Counts | None
) -> str | None:
    """A complaint about the numbers of nodes of a layer, by type of op; None if all is well."""
    allowed = reasons.allowed(name, target)
    if by_hand is None:
        return None if allowed is None else f"{name} on {target} has nothing beside it"
    if _total(ours) > (allowed or _total(by_hand)):
        return f"more nodes than before: {_line(name, target, ours, by_hand)}"
    if allowed is not None and _total(ours) <= _total(by_hand):
        return f"{name} on {target} needs no reason any more; run `python -m tools.layers --update`"
    return None


def _total(counts: counting.Counts) -> int:
    return sum(counts.values())


def _line(name: str, target: str, ours: counting.Counts, by_hand: counting.Counts | None) -> str:
    if by_hand is None:
        return f"{name:44}{target:10}{_total(ours):4}   -"
    more = collections.Counter(ours) - collections.Counter(by_hand)
    less = collections.Counter(by_hand) - collections.Counter(ours)
    kinds = [f"+{n} {op}" for op, n in more.items()] + [f"-{n} {op}" for op, n in less.items()]
    return f"{name:44}{target:10}{_total(ours):4}{_total(by_hand):4}  {' '.join(kinds)}"


if __name__ == "__main__":
    run(main)
