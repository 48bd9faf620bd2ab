"""Which axes of the arguments of harnesses may be symbolic, told for whole families.

A rule takes the arguments of a harness and returns a shape specification for each, as in
`polymorphic_shapes`. Axes of the same size share a variable, named after that size; axes of size 0
and 1 are never symbolic.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from harnesses.harness import Axes, Harness


def every_axis(args: Sequence[Any]) -> list[str | None]:
    """All axes of all arrays."""
    return [_spec(x, range(len(_shape(x)))) for x in args]


def axes(*positions: int) -> Axes:
    """These axes of each array that has them; negative positions count from the last axis."""
    return lambda args: [_spec(x, positions) for x in args]


def axes_but(*positions: int) -> Axes:
    """All axes of each array but these; negative positions count from the last axis."""

    def rule(args):
        return [_spec(x, set(range(len(_shape(x)))) - _known(x, positions)) for x in args]

    return rule


def axes_of(*positions: Collection[int]) -> Axes:
    """For each of the first arguments, the positions of its axes."""
    return lambda args: [_spec(x, of_x) for x, of_x in zip(args, positions, strict=False)]


def sizes_but(*sizes: int) -> Axes:
    """All axes whose size is not one of these."""
    return lambda args: [
        _spec(x, [i for i, size in enumerate(_shape(x)) if size not in sizes]) for x in args
    ]


def multiples(*counts: int) -> Axes:
    """The first axes of each array, which stay multiples of these numbers, as shards need it."""

    def spec(x):
        sizes = itertools.zip_longest(_shape(x), counts)
        return ", ".join(f"{n}*d{n}" if n and size else str(size) for size, n in sizes)

    return lambda args: [spec(x) for x in args]


def symbolic(
    rule: Sequence[str | None] | Axes,
) -> Callable[[Callable[[], Iterable[Harness]]], Callable[[], Iterator[Harness]]]:
    """Gives a rule to all harnesses of a generator function that have none of their own."""

    def decorate(generator):
        @functools.wraps(generator)
        def with_rule():
            for harness in generator():
                yield harness if harness.symbolic else dataclasses.replace(harness, symbolic=rule)

        return with_rule

    return decorate


def _shape(x: Any) -> tuple[int, ...]:
    """The shape of an array; that of any other argument is of no interest."""
    return x.shape if isinstance(x, np.ndarray) else ()


def _known(x: Any, positions: Collection[int]) -> set[int]:
    """Positions counted from the first axis, without those that an array does not have."""
    rank = len(_shape(x))
    return {i % rank for i in positions if -rank <= i < rank}


def _spec(x: Any, positions: Collection[int]) -> str | None:
    """The specification of an array in which these axes are symbolic; None if none is."""
    known = _known(x, positions)
    dims = [f"d{s}" if i in known and s > 1 else str(s) for i, s in enumerate(_shape(x))]
    return f"({', '.join(dims)})" if any(dim.startswith("d") for dim in dims) else None
