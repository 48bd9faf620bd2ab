"""Gather: reads windows of an array at positions given by indices."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arguments import ALL, INTEGER, is_complex, is_float, name, random
from harnesses.axes import axes, axes_of, every_axis
from harnesses.harness import Harness, harnesses

CLIP, FILL, PROMISE = (
    lax.GatherScatterMode.CLIP,
    lax.GatherScatterMode.FILL_OR_DROP,
    lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)
MODES = (CLIP, FILL, PROMISE)


def _numbers(offset=(), collapsed=(), start_map=(), operand_batching=(), indices_batching=()):
    return lax.GatherDimensionNumbers(
        offset, collapsed, start_map, operand_batching, indices_batching
    )


# Shape of the operand, shape of the indices, dimension numbers, sizes of the windows.
FORMS = {
    "element": ((7,), (5, 1), _numbers((), (0,), (0,)), (1,)),
    "element_scalar": ((7,), (1,), _numbers((), (0,), (0,)), (1,)),
    "element_kept": ((7,), (5, 1), _numbers((1,), (), (0,)), (1,)),
    "element_kept_first": ((7,), (5, 1), _numbers((0,), (), (0,)), (1,)),
    "window": ((7,), (5, 1), _numbers((1,), (), (0,)), (3,)),
    "window_scalar": ((7,), (1,), _numbers((0,), (), (0,)), (3,)),
    "window_first": ((7,), (5, 1), _numbers((0,), (), (0,)), (3,)),
    "window_whole": ((7,), (5, 1), _numbers((1,), (), (0,)), (7,)),
    "window_empty": ((7,), (5, 1), _numbers((1,), (), (0,)), (0,)),
    "row": ((6, 4), (5, 1), _numbers((1,), (0,), (0,)), (1, 4)),
    "row_scalar": ((6, 4), (1,), _numbers((0,), (0,), (0,)), (1, 4)),
    "row_part": ((6, 4), (5, 1), _numbers((1,), (0,), (0,)), (1, 2)),
    "row_first": ((6, 4), (5, 1), _numbers((0,), (0,), (0,)), (1, 4)),
    "rows": ((6, 4), (5, 1), _numbers((1, 2), (), (0,)), (2, 4)),
    "rows_around": ((6, 4), (5, 1), _numbers((0, 2), (), (0,)), (2, 4)),
    "column": ((4, 6), (5, 1), _numbers((0,), (1,), (1,)), (4, 1)),
    "column_last": ((4, 6), (5, 1), _numbers((1,), (1,), (1,)), (4, 1)),
    "columns": ((4, 6), (5, 1), _numbers((0, 1), (), (1,)), (4, 2)),
    "grid_of_rows": ((6, 4), (2, 3, 1), _numbers((2,), (0,), (0,)), (1, 4)),
    "grid_of_rows_between": ((6, 4), (2, 3, 1), _numbers((1,), (0,), (0,)), (1, 4)),
    "pair": ((6, 4), (5, 2), _numbers((), (0, 1), (0, 1)), (1, 1)),
    "pair_swapped": ((6, 4), (5, 2), _numbers((), (0, 1), (1, 0)), (1, 1)),
    "pair_kept": ((6, 4), (5, 2), _numbers((1, 2), (), (0, 1)), (1, 1)),
    "pair_scalar": ((6, 4), (2,), _numbers((), (0, 1), (0, 1)), (1, 1)),
    "block": ((6, 4), (5, 2), _numbers((1, 2), (), (0, 1)), (3, 2)),
    "block_swapped": ((6, 4), (5, 2), _numbers((0, 1), (), (1, 0)), (3, 2)),
    "block_scalar": ((6, 4), (2,), _numbers((0, 1), (), (0, 1)), (3, 2)),
    "block_collapsed": ((6, 4), (5, 2), _numbers((1,), (0,), (0, 1)), (1, 2)),
    "triple": ((3, 4, 5), (6, 3), _numbers((), (0, 1, 2), (0, 1, 2)), (1, 1, 1)),
    "triple_mixed": ((3, 4, 5), (6, 3), _numbers((), (0, 1, 2), (2, 0, 1)), (1, 1, 1)),
    "outer_pair": ((3, 4, 5), (6, 2), _numbers((1,), (0, 2), (0, 2)), (1, 4, 1)),
    "outer_pair_first": ((3, 4, 5), (6, 2), _numbers((0,), (0, 2), (2, 0)), (1, 4, 1)),
    "outer_pair_part": ((3, 4, 5), (6, 2), _numbers((1,), (0, 2), (0, 2)), (1, 2, 1)),
    "middle": ((3, 4, 5), (6, 1), _numbers((0, 2), (1,), (1,)), (3, 1, 5)),
    "middle_part": ((3, 4, 5), (6, 1), _numbers((1, 2), (1,), (1,)), (2, 1, 3)),
    "trailing_pair": ((3, 4, 5), (6, 2), _numbers((0,), (1, 2), (1, 2)), (3, 1, 1)),
    "batched": ((4, 5), (4, 3, 1), _numbers((), (1,), (1,), (0,), (0,)), (1, 1)),
    "batched_window": ((4, 5), (4, 3, 1), _numbers((2,), (), (1,), (0,), (0,)), (1, 2)),
    "batched_once": ((4, 5), (4, 1), _numbers((1,), (), (1,), (0,), (0,)), (1, 2)),
    "batched_second": ((4, 5), (3, 4, 1), _numbers((), (1,), (1,), (0,), (1,)), (1, 1)),
    "batched_inner": ((5, 4), (4, 3, 1), _numbers((), (0,), (0,), (1,), (0,)), (1, 1)),
    "batched_rows": ((4, 5, 2), (4, 3, 1), _numbers((2,), (1,), (1,), (0,), (0,)), (1, 1, 2)),
    "batched_twice": (
        (2, 3, 5),
        (2, 3, 4, 1),
        _numbers((), (2,), (2,), (0, 1), (0, 1)),
        (1, 1, 1),
    ),
    "batched_crossed": (
        (2, 3, 5),
        (3, 2, 4, 1),
        _numbers((), (2,), (2,), (0, 1), (1, 0)),
        (1, 1, 1),
    ),
    "batched_around": (
        (2, 5, 3),
        (2, 4, 3, 1),
        _numbers((1,), (), (1,), (0, 2), (0, 2)),
        (1, 2, 1),
    ),
    "batched_no_index": ((4, 5), (4, 0), _numbers((1,), (), (), (0,), (0,)), (1, 3)),
    "no_index": ((6, 4), (5, 0), _numbers((1, 2), (), ()), (3, 2)),
    "no_index_scalar": ((6, 4), (0,), _numbers((0,), (0,), ()), (1, 2)),
    "no_indices": ((6, 4), (0, 1), _numbers((1,), (0,), (0,)), (1, 4)),
    "empty_rows": ((6, 0), (5, 1), _numbers((1,), (0,), (0,)), (1, 0)),
    "many_axes": (
        (2, 1, 2, 3, 2, 2, 1, 2, 2),
        (4, 2),
        _numbers((1, 2, 3, 4, 5, 6, 7), (3, 8), (8, 3)),
        (2, 1, 2, 1, 2, 2, 1, 2, 1),
    ),
}


def _indices(shape, dtype=np.int32):
    """Returns a maker of indices: most are in bounds, some are negative or too large."""
    return random(shape, dtype, -2 if np.dtype(dtype).kind == "i" else 0, 7)


def _gather(case, shape, indices, numbers, sizes, mode, dtype=np.float32, constant=False):
    def fun(operand, indices):
        followed = [operand.shape[i] if n == shape[i] else n for i, n in enumerate(sizes)]
        return lax.gather(operand, indices, numbers, followed, mode=mode)

    operand = random(shape, dtype)
    params = {"mode": mode.name.lower()}
    # The axes along which windows have all elements, or at most one.
    whole = {i for i, n in enumerate(sizes) if n in (0, 1, shape[i])}
    if constant:
        known = indices(np.random.default_rng(0)) if callable(indices) else indices
        symbolic = axes_of(whole - set(numbers.operand_batching_dims))
        return Harness(
            "gather", case, lambda x: fun(x, known), (operand,), params=params, symbolic=symbolic
        )
    symbolic = axes_of(whole, range(-9, -1))
    return Harness("gather", case, fun, (operand, indices), params=params, symbolic=symbolic)


@harnesses
def gather_forms():
    for form, (shape, indices_shape, numbers, sizes) in FORMS.items():
        indices = _indices(indices_shape)
        for mode in (CLIP, FILL):
            yield _gather(f"{form}_{mode.name.lower()}", shape, indices, numbers, sizes, mode)
        case = f"{form}_fill_constant"
        yield _gather(case, shape, indices, numbers, sizes, FILL, constant=True)
    for form in ("element", "row_scalar", "block", "batched"):
        shape, indices_shape, numbers, sizes = FORMS[form]
        indices = _indices(indices_shape)
        case = f"{form}_promise_in_bounds"
        yield _gather(case, shape, indices, numbers, sizes, PROMISE)
        case = f"{form}_clip_constant"
        yield _gather(case, shape, indices, numbers, sizes, CLIP, constant=True)


@harnesses
def gather_known_in_bounds():
    """Yields harnesses with constant indices that are in bounds, and so need no clamping."""
    shape, _, numbers, sizes = FORMS["block"]
    indices = np.array([[0, 0], [3, 2], [1, 1]], np.int32)
    for mode in MODES:
        case = f"inside_{mode.name.lower()}"
        yield _gather(case, shape, indices, numbers, sizes, mode, constant=True)


@harnesses
def gather_in_order():
    """Yields harnesses with constant indices that are all positions along an axis, in order."""
    one, grid = np.arange(6, dtype=np.int32)[:, None], np.arange(6, dtype=np.int32).reshape(2, 3, 1)
    pair = np.concatenate([np.zeros_like(one), one], 1)
    for case, indices, numbers, sizes in (
        ("rows", one, _numbers((1,), (0,), (0,)), (1, 6)),
        ("rows_first", one, _numbers((0,), (0,), (0,)), (1, 6)),
        ("rows_kept", one, _numbers((1, 2), (), (0,)), (1, 6)),
        ("columns", one, _numbers((0,), (1,), (1,)), (6, 1)),
        ("columns_kept", one, _numbers((0, 1), (), (1,)), (6, 1)),
        ("grid_of_columns", grid, _numbers((1,), (1,), (1,)), (6, 1)),
        ("columns_of_pairs", pair, _numbers((1,), (1,), (0, 1)), (6, 1)),
    ):
        yield _gather(f"in_order_{case}", (6, 6), indices, numbers, sizes, FILL, constant=True)
    reverse = one[::-1].copy()
    numbers = _numbers((1,), (0,), (0,))
    yield _gather("in_reverse", (6, 6), reverse, numbers, (1, 6), FILL, constant=True)


@harnesses
def gather_dtypes():
    for dtype, form in itertools.product(ALL, ("row", "block_scalar")):
        shape, indices_shape, numbers, sizes = FORMS[form]
        case = f"{form}_{name(dtype)}_fill"
        yield _gather(case, shape, _indices(indices_shape), numbers, sizes, FILL, dtype)
    for dtype in ALL:
        shape, indices_shape, numbers, sizes = FORMS["window"]
        case = f"window_{name(dtype)}_clip"
        yield _gather(case, shape, _indices(indices_shape), numbers, sizes, CLIP, dtype)
        values = [0, 1]
        if is_float(dtype) or is_complex(dtype):
            values = [1, -0.0, np.inf, np.nan]
        elif np.dtype(dtype).kind in "iu":
            values = [1, np.iinfo(dtype).min, np.iinfo(dtype).max]
        shape, indices_shape, numbers, sizes = FORMS["element"]
        yield Harness(
            "gather",
            f"element_{name(dtype)}_fill_values",
            lambda x, i, values=values, numbers=numbers, sizes=sizes: [
                lax.gather(x, i, numbers, sizes, mode=FILL, fill_value=value) for value in values
            ],
            (random(shape, dtype), _indices(indices_shape)),
            symbolic=axes(0),
        )


@harnesses
def gather_index_dtypes():
    for dtype, mode in itertools.product(INTEGER, (CLIP, FILL)):
        info = np.iinfo(dtype)
        values = [0, 2, 5, 6, 100, info.max, info.max - 2, info.min, info.min // 2]
        if info.bits == 64:
            # JAX compares indices with bounds as 32-bit integers.
            values += [2**32 + 3, 2**31, 2**33 - 1]
        indices = np.array(values).astype(dtype)[:, None] if info.max < 2**63 else None
        if indices is None:
            indices = np.array([int(value) for value in values], np.uint64)[:, None]
        for form, shape in (("element", (7,)), ("window", (300,))):
            _, _, numbers, sizes = FORMS[form]
            case = f"{form}_indices_{name(dtype)}_{mode.name.lower()}"
            yield _gather(case, shape, indices, numbers, sizes, mode)
        _, _, numbers, sizes = FORMS["window_scalar"]
        yield Harness(
            "gather",
            f"window_scalar_indices_{name(dtype)}_{mode.name.lower()}",
            lambda x, *indices, numbers=numbers, sizes=sizes, mode=mode: [
                lax.gather(x, i, numbers, sizes, mode=mode) for i in indices
            ],
            (random((20,), np.float32), *indices),
        )


@harnesses
def gather_from_numpy_api():
    """Yields harnesses of the functions by which users bind gather."""
    x, i, j = random((6, 4, 5), np.float32), _indices((3,)), _indices((3,))
    k = _indices((2, 3))
    # The axes that may be symbolic, where these are not all of them.
    fixed = {
        "take_wrap": axes_of((1, 2), (0, 1)),
        "vmap_dynamic_slice": axes_of((), (0,)),
        "vmap_dynamic_slice_of_rows": axes(0),
        "vmap_vmap_dynamic_slice": axes(0, 1),
        "loop": axes_of((0,)),
    }
    for case, fun, args in [
        ("x[i]", lambda x, i: x[i], (x, i)),
        ("x[:,i]", lambda x, i: x[:, i], (x, i)),
        ("x[...,i]", lambda x, i: x[..., i], (x, i)),
        ("x[i,j]", lambda x, i, j: x[i, j], (x, i, j)),
        ("x[i,:,j]", lambda x, i, j: x[i, :, j], (x, i, j)),
        ("x[i,None,j]", lambda x, i, j: x[i, None, j], (x, i, j)),
        ("x[k]", lambda x, k: x[k], (x, k)),
        ("x[k,0]", lambda x, k: x[k, 0], (x, k)),
        ("x[::2,i]", lambda x, i: x[::2, i], (x, i)),
        ("take_fill", lambda x, k: jnp.take(x, k, axis=1), (x, k)),
        ("take_clip", lambda x, k: jnp.take(x, k, axis=2, mode="clip"), (x, k)),
        ("take_wrap", lambda x, k: jnp.take(x, k, axis=0, mode="wrap"), (x, k)),
        ("at_get", lambda x, i: x.at[i].get(mode="fill", fill_value=7), (x, i)),
        (
            "take_along_axis",
            lambda x, k: jnp.take_along_axis(x, k, axis=1),
            (x, _indices((6, 3, 5))),
        ),
        (
            "vmap_index",
            lambda x, i: jax.vmap(lambda x, i: x[i])(x, i),
            (x, _indices((6,))),
        ),
        (
            "vmap_dynamic_slice",
            lambda x, i: jax.vmap(lambda i: lax.dynamic_slice(x, (i, i, i), (2, 4, 3)))(i),
            (x, i),
        ),
        (
            "vmap_dynamic_slice_of_rows",
            lambda x, i: jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 0 * i), (2, 3)))(x, i),
            (x, _indices((6,))),
        ),
        (
            "vmap_vmap_dynamic_slice",
            lambda x, i: jax.vmap(jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,))))(x, i),
            (x, _indices((6, 4))),
        ),
        (
            "loop",
            lambda x, i: lax.fori_loop(0, 3, lambda n, y: y + x[i + n], jnp.zeros((3, 4, 5))),
            (x, i),
        ),
    ]:
        yield Harness(
            "gather", case.replace(" ", ""), fun, args, symbolic=fixed.get(case, every_axis)
        )
