"""Programs that run on the devices of a mesh."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from harnesses.arguments import ALL, random
from harnesses.axes import multiples, symbolic
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses
from harnesses.meshes import bind, mesh, on_mesh

BOTH = ("x", "y")
WHOLE, BY_X, BY_BOTH = P(), P("x"), P("x", "y")
MATRIX = random((8, 16), np.float32)
# Small ones: where tanh is next to one, its derivatives lose their digits, in JAX, too.
WEIGHTS = random((16, 3), np.float32, -0.2, 0.2)

# The tolerance is enough for products of small matrices and sums of few rows.
CLOSE = close(ulps=16, atol=1e-5)

untracked = functools.partial(on_mesh, check_vma=False)


def case(name, fun, *args, comparer=CLOSE, axes=()):
    return Harness("shard_map", name, fun, args or (MATRIX,), comparer, symbolic=axes)


def shards(args):
    """The axes of `MATRIX` and `WEIGHTS` that may be symbolic."""
    return ["8*m, 16*n", "16*n, k"][: len(args)]


@harnesses
@symbolic(multiples(8, 8))
def specs():
    """Yields harnesses of specs that split arguments and combine results."""

    def mark(*shards):
        is_marked = lax.axis_index(BOTH) % 3 == 0
        return [jnp.where(is_marked, jnp.zeros_like(x), x) for x in shards]

    # A result that is not split is that of the first device.
    for name, spec in (
        ("rows", P("x")),
        ("columns", P(None, "y")),
        ("both", P("x", "y")),
        ("swapped", P("y", "x")),
        ("in_one_dimension", P(None, ("x", "y"))),
        ("in_one_dimension_swapped", P(("y", "x"), None)),
        ("whole", P()),
    ):
        dtypes = ALL if name == "both" else (np.float32,)
        args = [random((8, 16), dtype) for dtype in dtypes]
        yield case(f"spec_{name}", untracked(mark, spec, spec), *args, comparer=exact)
    run = untracked(mark, P("x", "y"), P("y", "x"))
    yield case("spec_empty", run, np.zeros((0, 8), np.float32), comparer=exact)
    run = untracked(lambda x: [mark(x)[0], mark(x[0, 0])[0]], P("y"), [P(("x", "y")), P()])
    yield case("spec_mixed", run, comparer=exact)
    run = untracked(lambda: [lax.axis_index("x")[None], jnp.ones(2)], (), [P("x"), P("y")])
    yield Harness("shard_map", "no_operand", run)
    for sizes in ({"x": 1, "y": 4}, {"x": 2, "y": 1}, {"x": 1, "y": 1}):
        run = on_mesh(lambda x: (lax.psum(x, BOTH), x * 2), BY_BOTH, (WHOLE, BY_BOTH), **sizes)
        yield case("mesh_" + "x".join(str(size) for size in sizes.values()), run)


@harnesses
@symbolic(multiples(8, 8))
def control_flow():
    def scan(x):
        def body(carry, row):
            carry = jnp.sin(carry + row)
            return carry, (lax.pmean(carry, "y"), lax.psum(row, BOTH))

        return lax.scan(body, lax.pcast(jnp.zeros(x.shape[1:], x.dtype), BOTH, to="varying"), x)

    out_specs = (P(BOTH), (P("x"), P()))
    yield case("scan", on_mesh(scan, BY_BOTH, out_specs))
    yield case("scan_untracked", untracked(scan, BY_BOTH, out_specs))

    def while_loop(x):
        return lax.while_loop(
            lambda x: lax.pmax(x.max(), BOTH) < 100,
            lambda x: 2 * x + lax.ppermute(x, "y", [(0, 1), (1, 2), (2, 3), (3, 0)]) + 5,
            x,
        )

    yield case("while", on_mesh(while_loop, BY_BOTH, BY_BOTH))

    def while_each(x):
        """Runs a loop whose number of steps differs from device to device."""
        return lax.while_loop(lambda x: x.sum() < 100, lambda x: x + jnp.abs(x) + 1, x)

    yield case("while_each", on_mesh(while_each, BY_BOTH, BY_BOTH))

    def cond(x):
        return lax.cond(lax.psum(x[0, 0], BOTH) > 0, lambda x: lax.pmean(x, "x"), lambda x: -x, x)

    def switch(x):
        return lax.switch(lax.axis_index("y"), [jnp.sin, jnp.cos, jnp.negative], x)

    yield case("cond", untracked(cond, BY_BOTH, BY_BOTH))
    yield case("switch_each", on_mesh(switch, BY_BOTH, BY_BOTH))


@jax.custom_jvp
def _double(x):
    return lax.psum(x, "y") * 2


@_double.defjvp
def _double_jvp(primals, tangents):
    return _double(*primals), _double(*tangents) * 10


@jax.custom_vjp
def _scaled(x):
    return lax.pmean(jnp.exp(x), "y")


_scaled.defvjp(lambda x: (_scaled(x), x), lambda x, ct: (lax.psum(ct, "x") + jnp.cos(x),))


@harnesses
@symbolic(multiples(8, 16))
def calls():
    def called(x):
        x = jax.jit(lambda x: lax.psum(jnp.tanh(x), "y"))(x)
        x = jax.checkpoint(lambda x: lax.pmean(jnp.sin(x), "x"))(lax.pcast(x, "y", to="varying"))
        return x + jax.jit(jax.vmap(lambda x: jnp.cumsum(x)))(x)

    yield case("calls", on_mesh(called, BY_BOTH, P(None, "y")))
    yield case("calls_untracked", untracked(called, BY_BOTH, P(None, "y")))
    run = untracked(lambda x: (_double(x), _scaled(x)), BY_BOTH, (BY_X, BY_X))
    yield case("custom_derivatives", run)

    def nested(x):
        def inner(x):
            return lax.psum(x, BOTH) * (1 + lax.axis_index("x")), x * lax.axis_index("y")

        return jax.shard_map(
            inner,
            in_specs=P(None, "y"),
            out_specs=(P(), P(None, "y")),
            axis_names={"y"},
            check_vma=False,
        )(x)

    run = untracked(nested, BY_X, (BY_X, BY_X), axis_names={"x"})
    yield case("nested", run)
    run = on_mesh(lambda x: lax.psum(x @ x.T, "x"), BY_X, WHOLE, axis_names={"x"})
    yield case("some_axes", run)
    run = jax.pmap(lambda x: x / lax.psum(jnp.abs(x), "i"), axis_name="i")
    yield case("pmap", run, axes=("_, n",))
    run = jax.pmap(lambda x, y: lax.pmean(x * y, "i"), axis_name="i", in_axes=(1, None), out_axes=1)
    args = MATRIX, np.arange(8, dtype=np.float32)
    yield case("pmap_axes", lambda x, y: run(x[:, :4], y), *args, axes=("n, _", "n"))


def _loss(x, w):
    h = jnp.tanh(lax.psum(x @ w, "y"))
    return lax.pmean(jnp.sum(h**2), "x")


@harnesses
@symbolic(shards)
def gradients():
    tracked = on_mesh(_loss, (BY_BOTH, P("y")), WHOLE)
    yield case("loss", tracked, MATRIX, WEIGHTS)
    yield case("gradient", jax.grad(tracked, (0, 1)), MATRIX, WEIGHTS)
    gradient = jax.grad(untracked(_loss, (BY_BOTH, P("y")), WHOLE), (0, 1))
    yield case("gradient_untracked", gradient, MATRIX, WEIGHTS)
    run = on_mesh(lambda x, w: jax.grad(_loss, (0, 1))(x, w), (BY_BOTH, P("y")), (BY_BOTH, P("y")))
    yield case("gradient_inside", run, MATRIX, WEIGHTS)

    def second(x, w):
        return jax.jvp(jax.grad(tracked), (x, w), (x, w))[1]

    yield case("second_derivative", second, MATRIX, WEIGHTS)
    for fun in (_double, _scaled):
        run = untracked(fun, BY_BOTH, BY_X)
        derivative = jax.grad(lambda x, run=run: run(x).sum())
        yield case(f"derivative_of{fun.__name__}", derivative)
    collectives = untracked(
        lambda x: (
            lax.all_gather(x, "y", tiled=True) * lax.ppermute(x[:1], "x", [(0, 1)]),
            lax.all_to_all(x, "y", 1, 0, tiled=True) * lax.psum_scatter(x, "x", tiled=True)[:1, :1],
        ),
        BY_BOTH,
        (BY_BOTH, BY_BOTH),
    )
    yield case("gradient_of_collectives", jax.grad(lambda x: sum(map(jnp.sum, collectives(x)))))


@harnesses
def keys():
    """Yields harnesses in which each device draws its own random bits, for each key type."""
    # With fewer devices where converters take minutes for a hash on each of them.
    for impl, sizes in (
        ("threefry2x32", {"x": 2, "y": 4}),
        ("rbg", {"x": 2, "y": 2}),
        ("unsafe_rbg", {"x": 2, "y": 2}),
    ):

        def bits(keys):
            key = jax.random.fold_in(keys[0], lax.axis_index("y"))
            one, other = jax.random.split(key)
            return jax.random.bits(one, (4, 1)), jax.random.uniform(other, (4, 1))

        def run(seed, impl=impl, sizes=sizes):
            keys = jax.random.split(jax.random.key(seed, impl=impl), 2)
            return untracked(bits, BY_X, (BY_BOTH, BY_BOTH), **sizes)(keys)

        yield case(f"keys_{impl}", run, np.int32(7), comparer=exact)
    run = untracked(
        lambda keys: jax.random.bits(lax.all_gather(keys, "x", tiled=True)[1]), BY_X, WHOLE
    )
    yield case(
        "gathered_keys",
        lambda seed: run(jax.random.split(jax.random.key(seed), 2)),
        np.int32(7),
        comparer=exact,
    )


@harnesses
@symbolic(shards)
def explicit():
    """Yields harnesses of meshes with explicit axes, which are part of the types of arrays."""

    def run(x, w):
        devices = mesh(AxisType.Explicit, x=2, y=4)
        x = jax.sharding.reshard(x, NamedSharding(devices, BY_BOTH))
        w = jax.sharding.reshard(w, NamedSharding(devices, P("y")))
        on_devices = jax.shard_map(_loss, mesh=devices, in_specs=(BY_BOTH, P("y")), out_specs=WHOLE)
        return on_devices(x, w)

    yield case("explicit", run, MATRIX, WEIGHTS)
    yield case("explicit_gradient", jax.grad(run, (0, 1)), MATRIX, WEIGHTS)

    def reduced(x, w):
        """Has a reduced operand, whose gradient is unreduced: each device has a part of the sum."""
        devices = mesh(AxisType.Explicit, x=2)
        spec = P(None, None, reduced={"x"})
        x = jax.sharding.reshard(x, NamedSharding(devices, BY_X))
        w = jax.sharding.reshard(w, NamedSharding(devices, spec))
        on_devices = jax.shard_map(
            lambda x, w: jnp.tanh(x @ lax.pcast(w, "x", to="varying")),
            mesh=devices,
            in_specs=(BY_X, spec),
            out_specs=BY_X,
        )
        return on_devices(x, w).sum()

    gradient = jax.grad(lambda x, w: reduced(x, jnp.sin(w)), (0, 1))
    yield case("reduced_gradient", gradient, MATRIX, WEIGHTS)

    def unreduced(x):
        devices = mesh(AxisType.Explicit, x=2)
        spec = P(None, unreduced={"x"})
        x = jax.sharding.reshard(x, NamedSharding(devices, BY_X))
        parts = jax.shard_map(
            lambda x: lax.pcast(x.sum(0), "x", to="unreduced"),
            mesh=devices,
            in_specs=BY_X,
            out_specs=spec,
        )(x)
        total = jax.shard_map(
            bind("unreduced_psum", axes=("x",)), mesh=devices, in_specs=spec, out_specs=WHOLE
        )(parts)
        return total, jax.sharding.reshard(parts, NamedSharding(devices, WHOLE))

    yield case("unreduced", unreduced)
