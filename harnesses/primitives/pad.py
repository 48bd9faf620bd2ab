"""Padding: low, high and interior padding, and negative padding."""

import itertools

import numpy as np
from jax import lax

from harnesses.arguments import ALL, is_float, name, random
from harnesses.axes import axes, axes_of, every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def pad():
    for dtype in ALL:
        yield _pad((2, 3), ((1, 2, 0), (0, 1, 0)), dtype)
        yield _pad((3, 3), ((1, 0, 2), (-1, 2, 1)), dtype)
        if is_float(dtype):
            for value in (np.nan, -0.0):
                yield _pad((2,), ((1, 1, 1),), dtype, value)
    for size, interior in itertools.product((0, 1, 3), (0, 1, 2)):
        yield Harness(
            "pad",
            f"all_edges_size={size}_interior={interior}",
            lambda x, y, size=size, interior=interior: [
                lax.pad(x, y, ((low, high, interior),))
                for low, high in itertools.product((-2, -1, 0, 2), (-2, 0, 1))
                if low + high + size + max(size - 1, 0) * interior >= 0
            ],
            (random((size,), np.float32), random((), np.float32)),
            symbolic=axes(),
        )
    for shape, config in [
        ((), ()),
        ((2, 3), ((0, 0, 0), (0, 0, 0))),
        ((2, 3), ((0, 0, 1), (0, 0, 0))),
        ((2, 3), ((0, 0, 0), (0, 0, 2))),
        ((2, 3), ((-1, -1, 0), (1, 1, 0))),
        ((2, 3), ((-2, 3, 0), (0, 0, 0))),
        ((2, 3), ((-3, 4, 0), (1, 0, 0))),
        ((2, 3), ((5, -6, 0), (0, 0, 1))),
        ((2, 3), ((-1, 0, 1), (0, -1, 1))),
        ((2, 0), ((1, 1, 1), (0, 2, 1))),
        ((2, 0, 3), ((0, 0, 0), (1, 1, 0), (0, 0, 0))),
        ((2, 3, 4), ((1, -1, 1), (-1, 1, 0), (0, 0, 2))),
        ((1, 4, 4, 2), ((0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 0))),
        ((1, 4, 4, 2), ((0, 0, 0), (0, 1, 1), (0, 1, 1), (0, 0, 0))),
        ((2, 1) * 5, ((0, 0, 0), (1, 1, 0)) * 5),
        ((2, 1) * 5, ((-1, 0, 0), (0, 0, 0)) * 4 + ((1, -1, 1), (0, 1, 0))),
    ]:
        yield _pad(shape, config)
    yield Harness(
        "pad",
        "constant_value",
        lambda x: lax.pad(x, np.float32(2), ((1, 1, 0), (0, 0, 1))),
        (random((2, 3), np.float32),),
    )


def _pad(shape, config, dtype=np.float32, value=None):
    kind = "" if value is None else f"_value={value}"
    return Harness(
        "pad",
        f"shape={shape}_config={config}{kind}_{name(dtype)}".replace(" ", ""),
        lambda x, y: lax.pad_p.bind(x, y, padding_config=config),
        (random(shape, dtype), random((), dtype) if value is None else np.asarray(value, dtype)),
        symbolic=axes_of([i for i, (low, high, _) in enumerate(config) if low + high >= -1]),
    )
