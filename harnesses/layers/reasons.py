"""Why the graphs of some layers have more nodes than by hand.

`nodes.json` says how many each of them may have, as `python -m tools.layers --update` has counted
them. Each has one reason in `more_nodes`, and a reason that no layer needs is an error; targets
that are not in the file have not been counted yet.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Mapping

from harnesses.layers.more_nodes import REASONS
from harnesses.layers.reason import TARGETS

# For a target, the most nodes that layers may have that have more than by hand.
_FILE = pathlib.Path(__file__).with_name("nodes.json")


def allowed(name: str, target: str) -> int | None:
    """The most nodes that a layer may have on a target; None if no more than by hand."""
    return _counted().get(target, {}).get(name)


def reasons(name: str, target: str) -> list[str]:
    """The reasons for a layer on a target; exactly one if it may have more nodes."""
    return [reason.text for reason in REASONS if reason.covers(name, target)]


def problems() -> list[str]:
    """Contradictions between the reasons and the recorded numbers of nodes, as sentences."""
    counted = [(name, target) for target, of in _counted().items() for name in of]
    found = [
        f"{name} on {target} has {len(why)} reasons"
        for name, target in counted
        if len(why := reasons(name, target)) != 1
    ]
    for reason in REASONS:
        for like in reason.layers:
            only = dataclasses.replace(reason, layers=(like,))
            for target in set(reason.targets) & _counted().keys():
                if not any(only.covers(*row) for row in counted if row[1] == target):
                    found.append(f"no layer {like!r} needs on {target}: {reason.text}")
    return found


def record(counts: Mapping[str, Mapping[str, int]]) -> None:
    """Writes how many nodes layers have, by target and name, that have more than by hand."""
    ordered = {
        target: dict(sorted(counts[target].items())) for target in TARGETS if target in counts
    }
    _FILE.write_text(json.dumps(ordered, indent=1) + "\n")
    _counted.cache_clear()


def recorded() -> dict[str, dict[str, int]]:
    """A copy of the recorded numbers of nodes, by target and name."""
    return {target: dict(of) for target, of in _counted().items()}


@functools.cache
def _counted() -> Mapping[str, Mapping[str, int]]:
    return json.loads(_FILE.read_text())
