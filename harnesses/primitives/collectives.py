"""Collectives: communication among the devices of a mesh."""

import functools

import jax
import ml_dtypes
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from harnesses.arguments import ALL, BOOL, FLOAT, INTEGER, NUMBER, full_range, name, random
from harnesses.axes import multiples, symbolic
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses
from harnesses.meshes import bind, mesh, on_mesh
from lowering import jax_compat

BOTH = ("x", "y")
WHOLE, BY_X, BY_BOTH = P(), P("x"), P("x", "y")
GROUPS = [[0, 3], [2, 1]]

# `shard_map` without tracking of the mesh axes along which values vary (varying manual axes). With
# tracking JAX binds other primitives.
untracked = functools.partial(on_mesh, check_vma=False)


def positive(shape):
    """Returns a maker of positive values, whose sums do not cancel."""
    return random(shape, np.float32, 1, 8)


def arbitrary(shape, dtype):
    """Returns a maker of integers of the full range, or of random values of another dtype."""
    return full_range(shape, dtype) if dtype in INTEGER else random(shape, dtype)


def sum_of(dtype):
    """Returns the comparer of sums: the order in which devices add is not specified."""
    return exact if dtype in INTEGER else close(ulps=4, atol=8 * float(ml_dtypes.finfo(dtype).eps))


def each(fun):
    """Returns a function that applies `fun` to each of its arguments."""
    return lambda *args: [fun(x) for x in args]


@harnesses
def axis_index():
    def indices():
        values = [lax.axis_index(axes) for axes in ("y", BOTH, ("y", "x"))]
        return [x.reshape(1, 1) for x in values]

    for wrap in (on_mesh, untracked):
        case = "tracked" if wrap is on_mesh else "untracked"
        yield Harness("axis_index", case, wrap(indices, (), BY_BOTH))


@harnesses
@symbolic(multiples(4, 8))
def reductions():
    for primitive, fun in (("psum", lax.psum), ("pmax", lax.pmax), ("pmin", lax.pmin)):
        yield from _reductions(primitive, fun)


def _reductions(primitive, fun):
    def over_one_and_both_axes(x):
        return fun(x, "y"), fun(x, BOTH)

    def in_groups(x):
        return fun(x, "y", axis_index_groups=GROUPS)

    def of_same(x):
        return fun(x, BOTH), fun(x, "y"), fun((2, lax.axis_index("x")), BOTH)

    is_sum = primitive == "psum"

    def comparer(dtype):
        return sum_of(dtype) if is_sum else exact

    run = untracked(over_one_and_both_axes, BY_BOTH, (BY_X, WHOLE))
    for dtype in NUMBER if is_sum else (np.int8, np.int64, np.uint32, *FLOAT, *BOOL):
        yield Harness(primitive, name(dtype), run, (arbitrary((4, 8), dtype),), comparer(dtype))
    yield Harness(primitive, "empty", run, (np.zeros((0, 8), np.float32),))
    # There is no NaN, and no mix of zeros of both signs: with them JAX's result depends on which
    # device has them.
    infinite = np.array([[np.inf, 1, -np.inf, -np.inf], [5, -3, np.inf, 0]], np.float32)
    yield Harness(primitive, "infinite", run, (infinite,))
    yield Harness(primitive, "groups", untracked(in_groups, BY_BOTH, BY_BOTH), (positive((4, 8)),))
    run = untracked(of_same, BY_X, (WHOLE, BY_X, WHOLE))
    yield Harness(primitive, "same_along_an_axis", run, (positive((4, 3)),), comparer(np.float32))


@harnesses
@symbolic(multiples(2, 4))
def psum_invariant():
    def over_one_and_both_axes(x):
        return lax.psum(x, "y"), lax.psum({"x": x, "constant": 2, "bool": x > 3}, BOTH)

    run = on_mesh(over_one_and_both_axes, BY_BOTH, (BY_X, WHOLE))
    for dtype in (np.int8, np.uint64, np.float16, np.float32):
        arg = arbitrary((4, 8), dtype)
        yield Harness("psum_invariant", name(dtype), run, (arg,), sum_of(dtype))


@harnesses
@symbolic(multiples(2, 8))
def all_gather():
    def case(case, out_specs, *args, dtypes=(np.float32,), shape=(2, 8), **params):
        gather = each(functools.partial(lax.all_gather, **params))
        run = untracked(gather, BY_BOTH, out_specs)
        return Harness("all_gather", case, run, tuple(random(shape, d) for d in dtypes))

    yield case("dtypes", P(None, "x"), axis_name="y", dtypes=ALL)
    yield case("tiled", BY_X, axis_name="y", axis=1, tiled=True)
    yield case("last_axis", P(None, "y"), axis_name="x", axis=-1)
    yield case("axes", WHOLE, axis_name=("y", "x"), axis=1)
    yield case("axes_tiled", WHOLE, axis_name=BOTH, axis=1, tiled=True)
    yield case("empty", P(None, "x"), axis_name="y", shape=(0, 4))
    yield case("groups", P("x", None, "y"), axis_name="y", axis=1, axis_index_groups=GROUPS)
    yield case(
        "groups_tiled", BY_BOTH, axis_name="y", tiled=True, axis_index_groups=GROUPS, dtypes=ALL
    )

    def of_same(x):
        return lax.all_gather(x, "x"), lax.all_gather(x[0, 0], BOTH)

    run = untracked(of_same, P(None, "y"), (P(None, None, "y"), WHOLE))
    yield Harness("all_gather", "same_along_an_axis", run, (random((2, 8), np.float32),))


@harnesses
@symbolic(multiples(16, 32))
def reduce_scatter():
    def case(case, in_specs, out_specs, dtype=np.float32, shape=(4, 32), axes=(), **params):
        params = {"axis_name": "y", **params}
        run = untracked(functools.partial(lax.psum_scatter, **params), in_specs, out_specs)
        args = (arbitrary(shape, dtype),)
        return Harness("reduce_scatter", case, run, args, sum_of(dtype), symbolic=axes)

    for dtype in (np.int8, np.uint64, np.float16, np.float32, np.complex64):
        yield case(name(dtype), BY_BOTH, BY_BOTH, dtype, scatter_dimension=1, tiled=True)
    yield case("not_tiled", P("y", "x"), P(BOTH), shape=(16, 4), axes=("_, 2*n",))
    yield case("axes", P(None, BOTH), P(BOTH), shape=(8, 8), axis_name=("y", "x"), tiled=True)
    yield case("empty", BY_BOTH, BY_BOTH, shape=(16, 0), tiled=True)
    groups = {"axis_index_groups": GROUPS}
    yield case("groups", BY_BOTH, BY_BOTH, scatter_dimension=1, tiled=True, **groups)
    axes = ("_, 4*n",)
    yield case("groups_not_tiled", BY_BOTH, BY_X, shape=(4, 8), axes=axes, **groups)
    yield case("same_along_an_axis", BY_X, BY_BOTH, scatter_dimension=1, tiled=True)


@harnesses
@symbolic(multiples(16, 32))
def all_to_all():
    def case(case, *specs, dtypes=(np.float32,), shape=(8, 32), axis_name="y", axes=(), **params):
        exchange = each(functools.partial(lax.all_to_all, axis_name=axis_name, **params))
        run = untracked(exchange, *specs)
        args = tuple(random(shape, d) for d in dtypes)
        return Harness("all_to_all", case, run, args, symbolic=axes)

    both = BY_BOTH, BY_BOTH
    yield case("dtypes", *both, split_axis=0, concat_axis=1, tiled=True, dtypes=ALL)
    yield case("back", *both, split_axis=1, concat_axis=0, tiled=True)
    yield case("same_axis", *both, split_axis=1, concat_axis=1, tiled=True)
    axes = ("_, 4*n",)
    yield case("not_tiled", *both, split_axis=0, concat_axis=1, axes=axes)
    whole = {"shape": (4, 16), "axes": ("2*n, _",)}
    yield case("not_tiled_back", *both, split_axis=1, concat_axis=0, **whole)
    yield case(
        "axes", P(None, BOTH), P(BOTH), axis_name=BOTH, split_axis=0, concat_axis=1, tiled=True
    )
    yield case("empty", *both, split_axis=0, concat_axis=1, tiled=True, shape=(0, 4))
    groups = {"axis_index_groups": GROUPS}
    yield case("groups", *both, split_axis=0, concat_axis=1, tiled=True, dtypes=ALL, **groups)
    yield case("groups_same_axis", *both, split_axis=1, concat_axis=1, tiled=True, **groups)
    groups |= {"shape": (4, 8), "axes": axes}
    yield case("groups_not_tiled", *both, split_axis=0, concat_axis=1, **groups)
    yield case("same_along_an_axis", BY_X, BY_X, split_axis=0, concat_axis=1, tiled=True)


@harnesses
@symbolic(multiples(8, 4))
def ppermute():
    def case(case, perm, axis_name="y", dtypes=(np.float32,), in_specs=BY_BOTH, shape=(4, 8)):
        permute = each(lambda x: lax.ppermute(x, axis_name, perm))
        run = untracked(permute, in_specs, BY_BOTH)
        return Harness("ppermute", case, run, tuple(random(shape, d) for d in dtypes))

    ring = [(i, (i + 1) % 4) for i in range(4)]
    yield case("ring", ring, dtypes=ALL)
    yield case("partial", ring[:2], dtypes=ALL)
    yield case("none", [])
    yield case("axes", [(0, 7), (7, 1), (1, 2), (5, 5)], BOTH)
    yield case("empty", ring, shape=(0, 8))
    yield case("same_along_an_axis", ring[1:], in_specs=BY_X)


# The primitives below are bound if JAX tracks the axes along which values vary. Most of them have
# no public function.
_REDUCE = {"axes": ("x",)}
_GATHER = {"axis_name": ("x",), "all_gather_dimension": 0, "axis_size": 2, "tiled": True}
_SCATTER = {"axis_name": ("x",), "scatter_dimension": 0, "axis_size": 2, "tiled": True}
_EXCHANGE = {"axis_name": ("x",), "split_axis": 0, "concat_axis": 0, "tiled": True}
_PERMUTE = {"axis_name": ("x",), "perm": ((0, 1),)}
_NO_GROUPS = {"axis_index_groups": None}


def vary(x):
    return lax.pcast(x, "x", to="varying")


def reduced(x):
    return lax.pcast(x, "x", to="reduced")


def unreduced(x):
    return lax.pcast(x, "x", to="unreduced")


def tracked(primitive, *steps, in_specs=BY_X, out_specs=BY_X, check_vma=True):
    """Yields the harness of a primitive that one of the functions `steps` binds.

    Yields nothing if this version of JAX does not have the primitive.
    """
    if primitive in jax_compat.cpu_primitives():

        def fun(x):
            for step in steps:
                x = step(x)
            return x

        run = on_mesh(fun, in_specs, out_specs, check_vma=check_vma)
        yield Harness(primitive, "float32", run, (positive((8, 4)),))


@harnesses
@symbolic(multiples(8))
def casts():
    yield from tracked("pvary", vary, in_specs=WHOLE)
    for primitive in ("preduced", "reduced_vary_cast", "reduced_vary_cast_p"):
        yield from tracked(primitive, reduced, vary, in_specs=WHOLE)
    total = bind("unreduced_psum", **_REDUCE)
    for primitive in ("unreduced_psum", "vary_unreduced_cast", "vary_unreduced_cast_p"):
        yield from tracked(primitive, unreduced, total, out_specs=WHOLE)


@harnesses
@symbolic(multiples(8))
def casting():
    """Yields harnesses of collectives whose operand or result is not of varying type."""
    scatter = bind("unreduced_reduce_scatter", **_SCATTER)
    yield from tracked("unreduced_reduce_scatter", unreduced, scatter)
    gather = bind("all_gather_reduced", **_GATHER)
    yield from tracked("all_gather_reduced", gather, vary)
    gather = bind("all_gather_invariant", **_GATHER)
    yield from tracked("all_gather_invariant", gather, out_specs=WHOLE)


@harnesses
@symbolic(multiples(8))
def asynchronous():
    """Yields harnesses of asynchronous collectives: pairs of a start and a done primitive."""

    def start_and_done(start, done, params, before=(), after=(), **specs):
        steps = *before, bind(start, **params), bind(done), *after
        yield from tracked(start, *steps, **specs)
        # Several start primitives share a done primitive. Its harness is the one with the start
        # primitive that all versions of JAX have.
        if start == done.replace("done", "start").replace("psum", "psum_invariant"):
            yield from tracked(done, *steps, **specs)

    groups = _NO_GROUPS
    yield from start_and_done("all_gather_start", "all_gather_done", _GATHER | groups)
    yield from start_and_done("all_gather_reduced_start", "all_gather_done", _GATHER, after=[vary])
    yield from start_and_done("all_to_all_start", "all_to_all_done", _EXCHANGE | groups)
    yield from start_and_done("ppermute_start", "ppermute_done", _PERMUTE)
    yield from start_and_done("reduce_scatter_start", "reduce_scatter_done", _SCATTER | groups)
    yield from start_and_done(
        "unreduced_reduce_scatter_start", "reduce_scatter_done", _SCATTER, before=[unreduced]
    )
    invariant = {"out_specs": WHOLE}
    yield from start_and_done("psum_invariant_start", "psum_done", _REDUCE, **invariant)
    yield from start_and_done(
        "unreduced_psum_start", "psum_done", _REDUCE, before=[unreduced], **invariant
    )
    yield from start_and_done(
        "psum_start", "psum_done", _REDUCE | groups, check_vma=False, **invariant
    )


@harnesses
def unreduced_extrema():
    for kind in ("max", "min"):
        primitive = f"unreduced_p{kind}"
        if primitive in jax_compat.cpu_primitives():
            run = functools.partial(_unreduced_extremum, kind)
            yield Harness(primitive, "float32", run, (random((4, 6), np.float32),))


def _unreduced_extremum(kind, x):
    """Reduces each shard of an array to an unreduced value, and then reduces that."""
    devices = mesh(jax.sharding.AxisType.Explicit, x=2)
    spec = P(None, unreduced={"x"}, unreduced_kind=jax.sharding.UnreducedKind[kind])
    x = jax.sharding.reshard(x, jax.NamedSharding(devices, BY_X))
    reduce = {"max": lax.reduce_max, "min": lax.reduce_min}[kind]
    partial = reduce(x, (0,), out_sharding=jax.NamedSharding(devices, spec))
    total = bind(f"unreduced_p{kind}", **_REDUCE)
    return jax.shard_map(total, mesh=devices, in_specs=spec, out_specs=WHOLE)(partial)
