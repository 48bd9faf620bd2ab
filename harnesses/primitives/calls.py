"""Primitives that call a jaxpr."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import custom_partitioning as partitioning
from jax.experimental import pallas

from harnesses.arguments import ALL, INEXACT, full_range, name, random
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close
from harnesses.harness import SEVERAL_STEPS, Harness, harnesses
from lowering import jax_compat


def _rotated(x):
    return jnp.concatenate([x[1:], x[:1]])


@harnesses
@symbolic(every_axis)
def jit():
    inner = jax.jit(_rotated)
    for dtype in ALL:
        yield Harness(
            "jit", f"twice_{name(dtype)}", lambda x: inner(inner(x)), (random((3, 2), dtype),)
        )

    def many(x):
        for _ in range(20):
            x = _rotated(x) + x
        return x

    many = jax.jit(many)
    x = full_range((3,), np.int32)
    yield Harness("jit", "long_called_often", lambda x, y: many(many(x) * many(y)), (x, x))
    yield Harness(
        "jit",
        "long_on_a_constant",
        lambda x: many(x) + many(jnp.arange(3, dtype=np.int32)) + many(x + np.int32(1)),
        (x,),
        symbolic=axes(),
    )
    yield Harness("jit", "no_operands", jax.jit(lambda: jnp.arange(3, dtype=np.int32)), ())
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    yield Harness(
        "jit", "closure_over_constant", jax.jit(lambda x: x @ table.T), (x,), symbolic=axes()
    )
    yield Harness("jit", "operand_is_result", jax.jit(lambda x, y: (y, x, x)), (x, x))
    nested = jax.jit(lambda x: jax.jit(lambda y: jax.jit(jnp.flip)(y) + x)(x * 2))
    yield Harness("jit", "nested", nested, (x,))


@harnesses
@symbolic(every_axis)
def custom_jvp_call():
    @jax.custom_jvp
    def f(x):
        return x * jnp.tanh(x)

    @f.defjvp
    def _(primals, tangents):
        return f(*primals), 3 * tangents[0]

    for dtype in INEXACT:
        args = (random((4,), dtype),)
        yield Harness("custom_jvp_call", name(dtype), f, args, close())
    x = random((4,), np.float32)
    grad = jax.grad(lambda x: f(x).sum() + jax.nn.relu(x).sum() + jax.nn.softplus(x).sum())
    yield Harness("custom_jvp_call", "grad", grad, (x,), close())
    yield Harness("custom_jvp_call", "relu", jax.nn.relu, (x,), close())
    yield Harness("custom_jvp_call", "vmap", jax.vmap(f), (random((2, 3), np.float32),), close())

    @functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
    def g(x, fun):
        return fun(x) * 2

    g.defjvp(lambda fun, primals, tangents: (g(*primals, fun), tangents[0]))
    yield Harness("custom_jvp_call", "nondiff", lambda x: g(x, jnp.negative), (x,))


@harnesses
@symbolic(every_axis)
def custom_vjp_call():
    @jax.custom_vjp
    def f(x, n):
        return jnp.sin(x) * n

    def forward(x, n):
        return f(x, n), (x, n)

    def backward(residuals, cotangent):
        x, n = residuals
        return (jnp.cos(x) * cotangent * n * 2, None)

    f.defvjp(forward, backward)
    for dtype in INEXACT:
        args = (random((4,), dtype), np.int32(3))
        yield Harness(
            "custom_vjp_call", name(dtype), lambda x, n: f(x, n.astype(x.dtype)), args, close()
        )
    x = random((4,), np.float32)
    value_and_grad = jax.value_and_grad(lambda x: (f(x, 2.0) ** 2).sum())
    yield Harness(
        "custom_vjp_call", "value_and_grad", value_and_grad, (x,), close(), natural=SEVERAL_STEPS
    )


@harnesses
@symbolic(every_axis)
def remat2():
    def f(x):
        return jnp.sin(jnp.cos(x)) + x

    for dtype in INEXACT:
        args = (random((4,), dtype, -1, 1),)
        yield Harness("remat2", name(dtype), jax.checkpoint(f), args, close())
    x = random((4,), np.float32)
    grad = jax.grad(lambda x: jax.checkpoint(f)(x).sum())
    yield Harness("remat2", "grad", grad, (x,), close(), natural=SEVERAL_STEPS)
    policy = jax.checkpoint_policies.dots_saveable
    saveable = jax.checkpoint(lambda x: jnp.sin(x @ x) * x, policy=policy)
    grad = jax.grad(lambda x: saveable(x).sum())
    yield Harness("remat2", "policy_grad", grad, (random((3, 3), np.float32),), close(atol=1e-4))
    scanned = jax.grad(
        lambda x: lax.scan(jax.checkpoint(lambda c, y: (jnp.sin(c * y), c)), x[0], x)[1].sum()
    )
    args = (random((5,), np.float32),)
    yield Harness("remat2", "in_scan_grad", scanned, args, close(atol=1e-6), natural=SEVERAL_STEPS)
    static = jax.checkpoint(lambda x, n: x * n, static_argnums=(1,))
    yield Harness("remat2", "static", lambda x: static(x, 3), (x,))


@harnesses
@symbolic(every_axis)
def remat_opt():
    @jax.custom_vjp
    def f(x):
        return jnp.sin(x) + x

    def forward(x):
        return jnp.sin(x) + x, jnp.cos(x)

    f.defvjp(forward, lambda cos, cotangent: (cotangent * cos,), optimize_remat=True)
    x = random((3,), np.float32)
    value_and_grad = jax.value_and_grad(lambda x: f(x).sum())
    yield Harness("remat_opt", "grad", value_and_grad, (x,), close(atol=1e-6))
    # Where the residuals are not used, remat_opt becomes a closed_call of the primal function.
    yield Harness("closed_call", "grad", lambda x: jax.vjp(f, x)[0], (x,), close())


@harnesses
@symbolic(every_axis)
def custom_linear_solve():
    def solve(a, b, *, symmetric=False, transpose=True):
        def matvec(x):
            return a @ x

        def direct(matvec, b):
            return jnp.linalg.inv(a) @ b

        def transposed(vecmat, b):
            return jnp.linalg.inv(a).T @ b

        return lax.custom_linear_solve(
            matvec, b, direct, transposed if transpose else None, symmetric
        )

    def matrix(dtype):
        return lambda rng: (rng.normal(size=(3, 3)) + 4 * np.eye(3)).astype(dtype)

    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        args = (matrix(dtype), random((3,), dtype))
        yield Harness("custom_linear_solve", name(dtype), solve, args, close(ulps=64, atol=1e-6))
    args = (matrix(np.float32), random((3,), np.float32))
    grad = jax.grad(lambda a, b: solve(a, b).sum(), (0, 1))
    yield Harness("custom_linear_solve", "grad", grad, args, close(ulps=64, atol=1e-6))
    jvp = functools.partial(jax.jvp, solve)
    fun = lambda a, b: jvp((a, b), (a, b))  # noqa: E731
    yield Harness("custom_linear_solve", "jvp", fun, args, close(ulps=64, atol=1e-6))
    yield Harness(
        "custom_linear_solve",
        "no_transpose",
        functools.partial(solve, transpose=False),
        args,
        close(ulps=64, atol=1e-6),
    )
    with_aux = lambda a, b: lax.custom_linear_solve(  # noqa: E731
        lambda x: a @ x, b, lambda _, b: (b / 2, b.sum()), has_aux=True
    )
    yield Harness("custom_linear_solve", "aux", with_aux, args, close(atol=1e-6))


@harnesses
@symbolic(every_axis)
def custom_vmap_call():
    @jax.custom_batching.custom_vmap
    def f(x):
        return jnp.flip(x)

    f.def_vmap(lambda size, batched, x: (x + np.int32(1), True))
    yield Harness("custom_vmap_call", "plain", f, (random((3,), np.int32),))
    yield Harness(
        "custom_vmap_call", "in_scan", lambda x: lax.map(f, x), (random((4, 3), np.int32),)
    )


@harnesses
@symbolic(every_axis)
def linear_call():
    def f(r, x):
        return x / r

    def transposed(r, c):
        return c / r

    fun = lambda r, x: jax.custom_derivatives.linear_call(f, transposed, r, x)  # noqa: E731
    args = (random((3,), np.float32, 1, 4), random((3,), np.float32))
    yield Harness("linear_call", "plain", fun, args, close())
    grad = jax.grad(lambda r, x: (fun(r, x) ** 2).sum(), 1)
    yield Harness("linear_call", "grad", grad, args, close())


@harnesses
@symbolic(every_axis)
def composite():
    for dtype in (np.float32, np.int32):
        square = lax.composite(lambda x, *, scale: x * x * scale, "test.square", version=2)
        fun = functools.partial(square, scale=np.array(3, dtype))
        yield Harness("composite", name(dtype), fun, (random((3,), dtype),), close())


@harnesses
@symbolic(every_axis)
def custom_partitioning():
    @partitioning.custom_partitioning
    def f(x, y):
        return x + y, jnp.flip(x)

    f.def_partition(partition=lambda *_: None, sharding_rule="i, i -> i, i")
    args = (random((3,), np.int32), random((3,), np.int32))
    yield Harness("custom_partitioning", "plain", f, args)


@harnesses
@symbolic(every_axis)
def run_state():
    def f(refs):
        x, y = refs
        y[...] = x[...] + y[...]
        x[1] = y[0]

    args = (np.arange(3, dtype=np.float32), np.ones(3, np.float32))
    yield Harness("run_state", "plain", lambda x, y: pallas.run_state(f)((x, y)), args)


@harnesses
def eval_jaxpr():
    if "eval_jaxpr" in jax_compat.cpu_primitives():
        x = np.arange(6, dtype=np.int32).reshape(2, 3)
        traced = jax.jit(lambda x: (jnp.flip(x), x * 2)).trace(x)
        yield Harness("eval_jaxpr", "traced", lambda x: traced(x), (x,))
