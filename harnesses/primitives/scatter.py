"""Scatter: updates windows of an array at positions given by indices."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arguments import ALL, BOOL, FLOAT, INEXACT, INTEGER, name, random
from harnesses.axes import axes, axes_of, every_axis
from harnesses.compare import close, close_to_largest, exact
from harnesses.harness import DERIVATIVES, Harness, harnesses

CLIP, DROP, PROMISE = (
    lax.GatherScatterMode.CLIP,
    lax.GatherScatterMode.FILL_OR_DROP,
    lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)


def _numbers(window=(), inserted=(), index_map=(), operand_batching=(), indices_batching=()):
    return lax.ScatterDimensionNumbers(
        window, inserted, index_map, operand_batching, indices_batching
    )


# Shapes of the operand, the indices and the updates; dimension numbers.
FORMS = {
    "element": ((7,), (9, 1), (9,), _numbers((), (0,), (0,))),
    "element_scalar": ((7,), (1,), (), _numbers((), (0,), (0,))),
    "element_kept": ((7,), (9, 1), (9, 1), _numbers((1,), (), (0,))),
    "window": ((7,), (5, 1), (5, 3), _numbers((1,), (), (0,))),
    "window_scalar": ((7,), (1,), (3,), _numbers((0,), (), (0,))),
    "window_first": ((7,), (5, 1), (3, 5), _numbers((0,), (), (0,))),
    "window_whole": ((7,), (3, 1), (3, 7), _numbers((1,), (), (0,))),
    "window_whole_scalar": ((7,), (1,), (7,), _numbers((0,), (), (0,))),
    "window_empty": ((7,), (5, 1), (5, 0), _numbers((1,), (), (0,))),
    "row": ((6, 4), (9, 1), (9, 4), _numbers((1,), (0,), (0,))),
    "row_scalar": ((6, 4), (1,), (4,), _numbers((0,), (0,), (0,))),
    "row_first": ((6, 4), (9, 1), (4, 9), _numbers((0,), (0,), (0,))),
    "row_part": ((6, 4), (9, 1), (9, 2), _numbers((1,), (0,), (0,))),
    "rows": ((6, 4), (5, 1), (5, 2, 4), _numbers((1, 2), (), (0,))),
    "rows_around": ((6, 4), (5, 1), (2, 5, 4), _numbers((0, 2), (), (0,))),
    "column": ((4, 6), (9, 1), (4, 9), _numbers((0,), (1,), (1,))),
    "column_few": ((8, 20), (2, 1), (8, 2), _numbers((0,), (1,), (1,))),
    "columns": ((4, 6), (5, 1), (4, 5, 2), _numbers((0, 2), (), (1,))),
    "grid_of_rows": ((6, 4), (2, 3, 1), (2, 3, 4), _numbers((2,), (0,), (0,))),
    "grid_of_rows_between": ((6, 4), (2, 3, 1), (2, 4, 3), _numbers((1,), (0,), (0,))),
    "pair": ((3, 4), (9, 2), (9,), _numbers((), (0, 1), (0, 1))),
    "pair_swapped": ((3, 4), (9, 2), (9,), _numbers((), (0, 1), (1, 0))),
    "pair_scalar": ((3, 4), (2,), (), _numbers((), (0, 1), (0, 1))),
    "block": ((6, 4), (5, 2), (5, 3, 2), _numbers((1, 2), (), (0, 1))),
    "block_scalar": ((6, 4), (2,), (3, 2), _numbers((0, 1), (), (1, 0))),
    "block_partly_inserted": ((6, 4), (5, 2), (5, 2), _numbers((1,), (0,), (0, 1))),
    "triple": ((3, 2, 4), (9, 3), (9,), _numbers((), (0, 1, 2), (2, 0, 1))),
    "outer_pair": ((3, 2, 4), (5, 2), (5, 2), _numbers((1,), (0, 2), (0, 2))),
    "outer_pair_part": ((3, 3, 4), (5, 2), (5, 2), _numbers((1,), (0, 2), (2, 0))),
    "middle": ((3, 4, 5), (6, 1), (3, 6, 5), _numbers((0, 2), (1,), (1,))),
    "middle_part": ((3, 4, 5), (6, 1), (6, 2, 3), _numbers((1, 2), (1,), (1,))),
    "batched": ((4, 5), (4, 3, 1), (4, 3), _numbers((), (1,), (1,), (0,), (0,))),
    "batched_window": ((4, 5), (4, 3, 1), (4, 3, 2), _numbers((2,), (), (1,), (0,), (0,))),
    "batched_second": ((4, 5), (3, 4, 1), (3, 4), _numbers((), (1,), (1,), (0,), (1,))),
    "batched_inner": ((5, 4), (4, 3, 1), (4, 3), _numbers((), (0,), (0,), (1,), (0,))),
    "batched_rows": ((4, 5, 2), (4, 3, 1), (4, 3, 2), _numbers((2,), (1,), (1,), (0,), (0,))),
    "batched_crossed": (
        (2, 3, 5),
        (3, 2, 4, 1),
        (3, 2, 4),
        _numbers((), (2,), (2,), (0, 1), (1, 0)),
    ),
    "no_index_scalar": ((6, 4), (0,), (3, 2), _numbers((0, 1), (), ())),
    "no_indices": ((6, 4), (0, 1), (0, 4), _numbers((1,), (0,), (0,))),
    "empty_rows": ((6, 0), (5, 1), (5, 0), _numbers((1,), (0,), (0,))),
    "many_axes": (
        (2, 1, 2, 3, 2, 2, 1, 2, 2),
        (4, 2),
        (4, 2, 1, 2, 2, 2, 1, 2),
        _numbers((1, 2, 3, 4, 5, 6, 7), (3, 8), (8, 3)),
    ),
}

FUNCTIONS = {
    "scatter": lax.scatter,
    "scatter-add": lax.scatter_add,
    "scatter-sub": lax.scatter_sub,
    "scatter-mul": lax.scatter_mul,
    "scatter-min": lax.scatter_min,
    "scatter-max": lax.scatter_max,
}


def _indices(shape, dtype=np.int32):
    """Returns a maker of indices, with duplicates and with some that are out of bounds."""
    return random(shape, dtype, -2 if np.dtype(dtype).kind == "i" else 0, 7)


def _scatter(primitive, case, form, mode, dtype=np.float32, indices=None, unique=False, **kwargs):
    shape, indices_shape, updates, numbers = FORMS[form]
    kwargs.setdefault("symbolic", _axes(form))

    def fun(operand, indices, updates):
        return FUNCTIONS[primitive](
            operand, indices, updates, numbers, mode=mode, unique_indices=unique
        )

    return Harness(
        primitive,
        case,
        fun,
        (
            random(shape, dtype),
            _indices(indices_shape) if indices is None else indices,
            random(updates, dtype),
        ),
        _comparer(primitive, dtype),
        natural=_natural(primitive),
        params={"mode": mode.name.lower()},
        **kwargs,
    )


def _axes(form, constant=False):
    """The rule for the axes along which windows have all elements, or at most one."""
    shape, _, updates, numbers = FORMS[form]
    batching = numbers.operand_batching_dims
    others = [i for i in range(len(shape)) if i not in (*numbers.inserted_window_dims, *batching)]
    windows = dict(zip(others, numbers.update_window_dims, strict=True))
    operand = {
        i for i, n in enumerate(shape) if i not in windows or updates[windows[i]] in (0, 1, n)
    }
    parts = {windows[i] for i in windows if i not in operand}
    if constant:
        whole = operand - set(batching)
        return axes_of(whole, [windows[i] for i in whole if i in windows])
    return axes_of(operand, range(-9, -1), set(range(len(updates))) - parts)


def _comparer(primitive, dtype):
    # XLA uses fused multiply-add in a complex product; TensorFlow does not.
    return close() if primitive == "scatter-mul" and np.dtype(dtype).kind == "c" else exact


def _natural(primitive):
    """How sums and products are compared whose order is open."""
    is_arithmetic = primitive in ("scatter-add", "scatter-sub", "scatter-mul")
    return close_to_largest(ulps=32) if is_arithmetic else None


@harnesses
def scatter_forms():
    for form, mode, primitive in itertools.product(FORMS, (CLIP, DROP), ("scatter", "scatter-add")):
        yield _scatter(primitive, f"{form}_{mode.name.lower()}", form, mode)
    for form in ("element", "row", "block", "pair_scalar"):
        yield _scatter("scatter-add", f"{form}_promise_in_bounds", form, PROMISE)
    for form, primitive in itertools.product(
        ("element", "rows_around", "column_few", "block", "pair_scalar", "batched"),
        ("scatter-sub", "scatter-mul", "scatter-min", "scatter-max"),
    ):
        yield _scatter(primitive, f"{form}_drop", form, DROP)


@harnesses
def scatter_dtypes():
    for primitive, dtype in itertools.product(FUNCTIONS, ALL):
        if dtype in BOOL and primitive in ("scatter-add", "scatter-sub", "scatter-mul"):
            continue
        forms = (
            ("element", "window_scalar")
            if primitive in ("scatter", "scatter-add")
            else ("element",)
        )
        for form in forms:
            yield _scatter(primitive, f"{form}_{name(dtype)}", form, DROP, dtype)


@harnesses
def scatter_index_dtypes():
    for dtype, mode in itertools.product(INTEGER, (CLIP, DROP)):
        info = np.iinfo(dtype)
        values = [0, 2, 5, 6, 100, info.max, info.max - 2, info.min, info.min // 2]
        if info.bits == 64:
            values += [2**32 + 3, 2**31, 2**33 - 1]
        indices = np.array([int(value) for value in values], dtype)[:9, None]
        case = f"element_indices_{name(dtype)}_{mode.name.lower()}"
        yield _scatter("scatter-add", case, "element", mode, indices=indices)
        case = f"window_scalar_indices_{name(dtype)}_{mode.name.lower()}"
        shape, _, updates, numbers = FORMS["window_scalar"]
        # JAX's derivative gathers by indices of which it promises that they are in bounds. XLA
        # takes large ones of unsigned dtypes for negative if they are constants, and only then.
        has_derivatives = not (np.issubdtype(dtype, np.unsignedinteger) and mode is CLIP)
        yield Harness(
            "scatter",
            case,
            lambda x, y, *indices, numbers=numbers, mode=mode: [
                lax.scatter(x, i, y, numbers, mode=mode) for i in indices
            ],
            (random(shape, np.float32), random(updates, np.float32), *indices),
            derivatives=DERIVATIVES if has_derivatives else None,
            symbolic=axes(),
        )


@harnesses
def scatter_unique():
    indices = np.array([[5], [2], [0], [9], [3], [-1], [1], [6], [4]], np.int32)
    for primitive in FUNCTIONS:
        yield _scatter(primitive, "unique", "element", DROP, indices=indices, unique=True)
        yield _scatter(primitive, "unique_rows", "row", DROP, indices=indices, unique=True)


@harnesses
def scatter_known_indices():
    forms = ("element", "row", "block", "pair_scalar", "batched", "window_first")
    for form, mode in [("element", CLIP), *((form, DROP) for form in forms)]:
        shape, indices_shape, updates, numbers = FORMS[form]
        indices = _indices(indices_shape)(np.random.default_rng(0))
        for primitive in ("scatter", "scatter-add", "scatter-mul"):
            fun = functools.partial(FUNCTIONS[primitive], dimension_numbers=numbers, mode=mode)
            yield Harness(
                primitive,
                f"{form}_constant_{mode.name.lower()}",
                lambda x, y, fun=fun, indices=indices: fun(x, indices, y),
                (random(shape, np.float32), random(updates, np.float32)),
                natural=_natural(primitive),
                symbolic=_axes(form, constant=True),
            )


@harnesses
def scatter_special_values():
    """Yields harnesses that combine NaN, infinities and zeros of both signs in every order."""
    special = [np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0]
    triples = np.array(list(itertools.product(special, special, special)))
    for primitive, dtype in itertools.product(FUNCTIONS, FLOAT):
        operand, first, second = (triples[:, i].astype(dtype) for i in range(3))
        count = len(triples)
        indices = np.concatenate([np.arange(count), np.arange(count)]).astype(np.int32)[:, None]
        numbers = FORMS["element"][3]
        yield Harness(
            primitive,
            f"special_values_{name(dtype)}",
            lambda x, i, y, primitive=primitive, numbers=numbers: FUNCTIONS[primitive](
                x, i, y, numbers, mode=DROP
            ),
            (operand, indices, np.concatenate([first, second])),
            symbolic=axes(0),
        )


@harnesses
def scatter_apply():
    """Yields harnesses with update functions that have no primitive of their own."""
    for form, mode in itertools.product(("element", "row", "block", "pair_scalar"), (CLIP, DROP)):
        shape, indices_shape, updates, numbers = FORMS[form]
        yield Harness(
            "scatter",
            f"apply_{form}_{mode.name.lower()}",
            lambda x, i, numbers=numbers, updates=updates, mode=mode: lax.scatter_apply(
                x, i, lambda y: 2 * y + 1, numbers, update_shape=updates, mode=mode
            ),
            (random(shape, np.float32), _indices(indices_shape)),
            symbolic=axes_of(numbers.inserted_window_dims),
        )
    for dtype in (*INEXACT, np.int32, np.int8):
        shape, indices_shape, updates, numbers = FORMS["element"]
        yield Harness(
            "scatter",
            f"apply_{name(dtype)}",
            lambda x, i, numbers=numbers: lax.scatter_apply(
                x, i, lambda y: -y, numbers, update_shape=i.shape[:1], mode=DROP
            ),
            (random(shape, dtype), _indices(indices_shape)),
            symbolic=axes(0),
        )


@harnesses
def scatter_from_numpy_api():
    """Yields harnesses of the functions by which users bind scatter."""
    x, i, j = random((6, 4, 5), np.float32), _indices((3,)), _indices((3,))
    for case, primitive, fun, args in [
        ("x.at[i].set", "scatter", lambda x, i: x.at[i].set(1), (x, i)),
        ("x.at[i[0]].set", "scatter", lambda x, i: x.at[i[0]].set(1), (x, i)),
        ("x.at[i[0],1:3].set", "scatter", lambda x, i: x.at[i[0], 1:3].set(1), (x, i)),
        ("x.at[1:4].set", "scatter", lambda x: x.at[1:4].set(1), (x,)),
        ("x.at[::2,1].add", "scatter-add", lambda x: x.at[::2, 1].add(1), (x,)),
        ("x.at[:,i].add", "scatter-add", lambda x, i: x.at[:, i].add(1), (x, i)),
        ("x.at[i,:,j].add", "scatter-add", lambda x, i, j: x.at[i, :, j].add(1), (x, i, j)),
        ("x.at[i,j].multiply", "scatter-mul", lambda x, i, j: x.at[i, j].mul(3), (x, i, j)),
        ("x.at[i].min", "scatter-min", lambda x, i: x.at[i].min(0), (x, i)),
        ("x.at[i].max", "scatter-max", lambda x, i: x.at[i].max(0), (x, i)),
        ("x.at[i].subtract", "scatter-sub", lambda x, i: x.at[i].subtract(2), (x, i)),
        ("x.at[i].apply", "scatter", lambda x, i: x.at[i].apply(jnp.abs), (x, i)),
        (
            "grad_of_gather",
            "scatter-add",
            lambda x, i: jax.grad(lambda x: jnp.sum(x[i] * jnp.arange(20.0).reshape(4, 5)))(x),
            (x, i),
        ),
        (
            "vmap_set",
            "scatter",
            lambda x, i: jax.vmap(lambda x, i: x.at[i].set(0))(x, i),
            (x, _indices((6,))),
        ),
        (
            "bincount",
            "scatter-add",
            lambda i: jnp.bincount(i, length=7),
            (random((50,), np.int32, 0, 9),),
        ),
        (
            "loop_set",
            "scatter",
            lambda x: lax.fori_loop(0, 9, lambda i, x: x.at[i].set(i + x[0]), x),
            (x,),
        ),
        (
            "loop_add",
            "scatter-add",
            lambda x: lax.fori_loop(0, 9, lambda i, x: x.at[i - 2, 1].add(x[1, 0]), x),
            (x,),
        ),
    ]:
        rule = axes(0) if case == "grad_of_gather" else every_axis
        yield Harness(primitive, case.replace(" ", ""), fun, args, symbolic=rule)
