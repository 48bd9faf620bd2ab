"""Complex numbers become their parts, jaxpr in and jaxpr out."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import lowering
from lowering import jax_compat, registry
from lowering.avals import is_complex
from lowering.errors import UnsupportedError
from lowering.ops.dtypes import COMPLEX
from lowering.passes import pipeline
from lowering.passes.everywhere import Everywhere
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.complex_numbers import split_complex
from lowering.passes.legalize.splitting import UNSPLIT
from lowering.targets import ONNX, TF
from tests.passes.programs import assert_typed, counts, primitives, traced

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 3)).astype(np.float32)


def numbers(*shape):
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)


Z, W = numbers(3, 3), numbers(3, 3)


def parts(arrays):
    """Arrays, with the real and the imaginary part in place of each complex one."""
    arrays = map(np.asarray, arrays)
    return [part for x in arrays for part in ((x.real, x.imag) if x.dtype.kind == "c" else (x,))]


def all_dtypes(jaxpr):
    """The dtypes of all variables of a jaxpr, and of those that are in it."""
    variables = [*jaxpr.invars, *jaxpr.constvars, *jaxpr.outvars]
    for eqn in jaxpr.eqns:
        variables += [*eqn.invars, *eqn.outvars]
    found = {var.aval.dtype for var in variables}
    for eqn in jaxpr.eqns:
        for called in called_jaxprs(eqn):
            found |= all_dtypes(called)
    return found


class _Inlined(Everywhere):
    """Jaxprs without calls by a primitive of ours, which JAX does not compile."""

    def _changed(self, jaxpr):
        changed = super()._changed(jaxpr)
        is_closed = isinstance(changed, jex_core.ClosedJaxpr)
        return inline_calls(changed, frozenset()) if is_closed else changed


def check(fun, *args):
    """Compares what JAX computes from a function and from its parts; returns these."""
    before = traced(fun, *args)
    after = split_complex(before, ONNX)
    assert not any(map(is_complex, all_dtypes(after)))
    inlined = _Inlined(lambda eqn: eqn).jaxpr(after)
    expected = parts(jex_core.jaxpr_as_fun(before)(*args))
    with jax.enable_x64(True):  # As decompositions are traced.
        assert_typed(inlined)
        results = jex_core.jaxpr_as_fun(inlined)(*parts(args))
    for x, y in zip(expected, results, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(y, x, rtol=2e-5, atol=2e-5)
    return after


FUNCTIONS = {
    "identity": lambda z: z,
    "parts": lambda z: (z.real, z.imag, jnp.conj(z)),
    "of reals": lambda x: lax.complex(x, 2 * x),
    "of a number": lambda x: lax.complex(x, 0.0) + lax.conj(x),
    "conversions": lambda z, x: (x.astype("complex64"), z.astype("float32"), z.astype("int32")),
    "bools": lambda z: (z.astype("bool"), (z.real > 0).astype("complex64")),
    "arithmetic": lambda z, w: (z + w, z - w, -z, z * w, z / w),
    "with numbers": lambda z: (z + 2, 2j * z, z / (1 + 1j), 3 - z),
    "with constants": lambda z: z * W + np.eye(3),
    "powers": lambda z, w: (z**2, z**-3, z**w, jnp.sqrt(z), lax.rsqrt(z)),
    "functions": lambda z: (jnp.exp(z), jnp.log(z), jnp.sin(z), jnp.tanh(z), jnp.abs(z)),
    "inverses": lambda z: (jnp.arcsin(z), jnp.arccosh(z), jnp.arctan(z)),
    "comparisons": lambda z, w: (z == w, z != z, jnp.maximum(z, w), jnp.sort(z, 0)),
    "moves": lambda z, w: (jnp.concatenate([z, w.T])[::-1], z[1:, :2], jnp.pad(w, 1, "reflect")),
    "padded": lambda z: jnp.pad(z, 1, constant_values=2 - 1j),
    "where": lambda z, w: jnp.where(z.real > 0, z, w),
    "gather": lambda z: (z[jnp.array([0, 2, 1])], z.at[jnp.array([0, 5])].get(fill_value=3 + 1j)),
    "scatter": lambda z, w: (w.at[1].add(z[0]), w.at[0].set(z[1]), w.at[2, 0].multiply(z[0, 0])),
    "apply": lambda z: z.at[jnp.array([0, 2])].apply(lambda x: x * x),
    "reductions": lambda z, w: (z.sum(0), w.prod(1), jnp.cumsum(z, 1), w.max(0)),
    "contractions": lambda z, x: (z @ z.T, z @ x, jnp.einsum("ij,jk->ki", x, z)),
    "convolution": lambda z, w: jnp.convolve(z[0], w[1]),
    "custom reduction": lambda z: lax.reduce(z, np.complex64(1), lambda a, b: a * b * 2, (0,)),
    "fft": lambda z, x: (jnp.fft.fft(z), jnp.fft.ifft2(z), jnp.fft.rfft(x), jnp.fft.irfft(z, 4)),
    "solve": lambda z, w: jnp.linalg.solve(z, w),
    "barrier": lambda z, x: lax.optimization_barrier((z, x)),
    "from nothing": lambda: (lax.iota(np.complex64, 4), lax.empty((2, 3), np.complex64)),
    "of broadcasts": lambda x: lax.complex(x, x[:1]) * 2,
}
ARGUMENTS = {"z": Z, "w": W, "x": X}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    fun = FUNCTIONS[name]
    check(fun, *(ARGUMENTS[key] for key in fun.__code__.co_varnames[: fun.__code__.co_argcount]))


def test_a_program_without_complex_numbers_stays_the_same():
    def fun(x):
        carry, _ = lax.scan(lambda c, y: (c + jax.nn.relu(y), None), x[0], x)
        return lax.cond(carry[0] > 0, jnp.sin, jnp.cos, carry)

    jaxpr = traced(fun, X)
    assert split_complex(jaxpr, ONNX) is jaxpr


def test_what_has_complex_numbers_in_between_only():
    after = check(lambda x: jnp.abs(jnp.exp(1j * x)), X)
    assert [v.aval for v in after.jaxpr.invars] == [v.aval for v in traced(jnp.sin, X).jaxpr.invars]


def test_doubles():
    with jax.enable_x64(True):
        z = Z.astype(np.complex128)
        after = check(lambda z: (z * W, jnp.fft.fft(z), z @ z, jnp.exp(z), z.real), z)
        assert {var.aval.dtype for var in after.jaxpr.outvars} == {np.dtype(np.float64)}


def test_parts_that_nothing_uses_fall_away():
    after = check(lambda z, w: (z * w).real, Z, W)
    assert counts(after) == {"mul": 2, "sub": 1}


def test_a_movement_is_one_of_each_part():
    assert primitives(check(jnp.transpose, Z)) == ["transpose"] * 2
    assert primitives(check(lambda z: z.real.T + z.imag, Z)) == ["transpose", "add"]


def test_constants_and_numbers():
    after = check(lambda z: z + W + 2j, Z)
    assert [c.dtype for c in after.consts] == [np.float32] * 2
    literals = [x for eqn in after.eqns for x in eqn.invars if isinstance(x, jex_core.Literal)]
    assert sorted(float(x.val) for x in literals) == [0, 2]
    after = check(lambda x: (x, np.complex64(1 + 2j)), X)
    assert [float(x.val) for x in after.jaxpr.outvars[1:]] == [1, 2]


def test_a_scan_has_groups_of_other_sizes():
    def fun(z, w, x):
        def step(carry, element):
            total, count, last = carry
            y, v = element
            return (total * w[0] + y, count + 1, v), (total, v, last * total)

        return lax.scan(step, (z[0], 0, x[0]), (z, x), reverse=True, unroll=2)

    after = check(fun, Z, W, X)
    (eqn,) = (eqn for eqn in after.eqns if eqn.primitive.name == "scan")
    assert jax_compat.scan_counts(eqn.params) == (2, 4)
    assert len(eqn.invars) == 2 + 4 + 3


def test_a_loop_with_constants():
    def fun(z, w, x):
        def goes_on(state):
            s, n = state
            return (jnp.abs(s[0, 0]) < jnp.abs(w[0, 0]) * 9) & (n < x.size)

        return lax.while_loop(goes_on, lambda state: (state[0] * (2j + w), state[1] + 1), (z, 0))

    check(fun, Z, W, X)


def test_a_loop_whose_body_alone_has_complex_numbers():
    check(lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.abs(lax.complex(y, x)) * 0.5, x), X)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_branches(index):
    def fun(z, x, index):
        branches = [lambda z, x: (z, x), lambda z, x: (z * x, z.imag), lambda z, x: (x + 1j, x)]
        return lax.switch(index, branches, z, x)

    check(fun, Z, X, np.int32(index))


def test_nested():
    def fun(z, w):
        def step(c, e):
            c = lax.cond(c.real[0] > 0, lambda: c * e, lambda: jax.jit(jnp.conj)(c) + 1)
            return lax.fori_loop(0, 2, lambda i, y: y * e, c), jnp.abs(c)

        return jax.jit(lambda: lax.scan(step, z[0], w))()

    check(fun, Z, W)


def test_calls_share_what_they_call():
    @jax.jit
    def called(z, x):
        for _ in range(8):
            z = jnp.conj(z) * x
        return z

    def fun(z, x):
        return lax.cond(x[0, 0] > 0, lambda: called(called(z, x), x), lambda: called(z, x))

    after = check(fun, Z, X)
    (eqn,) = (eqn for eqn in after.eqns if eqn.primitive.name == "cond")
    calls = [eqn for branch in eqn.params["branches"] for eqn in branch.eqns]
    found = {id(eqn.params["jaxpr"]) for eqn in calls if eqn.primitive.name == "expansion"}
    assert len(found) == 1
    _, functions = pipeline.whole_program(traced(fun, Z, X), ONNX)
    assert len(functions) == 1


def test_a_call_without_complex_numbers_stays_as_it_is():
    called = jax.jit(lambda x: jnp.sin(x) + 1)
    before = traced(lambda z: lax.complex(called(z.real), called(z.imag)), Z)
    after = split_complex(before, ONNX)
    assert primitives(after) == ["jit", "jit"]
    kept = {id(eqn.params["jaxpr"]) for eqn in before.eqns if eqn.primitive.name == "jit"}
    assert {id(eqn.params["jaxpr"]) for eqn in after.eqns} == kept


def test_derivatives_of_the_user():
    @jax.custom_jvp
    def twice(z):
        return 2 * z

    twice.defjvp(lambda primals, tangents: (twice(*primals), 3 * tangents[0]))

    @jax.custom_vjp
    def thrice(z):
        return 3 * z

    thrice.defvjp(lambda z: (thrice(z), None), lambda _, g: (5 * g,))

    def fun(z):
        return jax.vjp(lambda z: jax.checkpoint(twice)(z) + thrice(z), z)[1](z)

    check(lambda z: (twice(z), thrice(z), jax.checkpoint(jnp.exp)(z)), Z)
    check(fun, Z)
    check(lambda z: jax.jvp(jnp.tanh, (z,), (z,)), Z)


def test_deep_calls():
    """They are nested deeper than functions of Python may be."""
    jaxpr = traced(jax.jit(jnp.conj), Z)
    for _ in range(2000):
        (eqn,) = jaxpr.eqns
        eqn = eqn.replace(params={**eqn.params, "jaxpr": jaxpr})
        jaxpr = jax_compat.with_equations(jaxpr, jaxpr.jaxpr.invars, jaxpr.jaxpr.outvars, [eqn])
    after = split_complex(jaxpr, ONNX)
    assert [var.aval.dtype for var in after.jaxpr.outvars] == [np.float32] * 2


def test_symbolic_sizes():
    (n, m) = jax.export.symbolic_shape("n, m")
    z, x = (jax.ShapeDtypeStruct((n, m), dtype) for dtype in (np.complex64, np.float32))

    def fun(z, x):
        y = lax.scan(lambda c, e: (c * e, c), z[0], z)[1]
        return jnp.concatenate([z, x.astype("complex64")]), y @ z.T, lax.complex(x, 1.0)

    after = split_complex(traced(fun, z, x), ONNX)
    assert not any(map(is_complex, all_dtypes(after)))
    shapes = [var.aval.shape for var in after.jaxpr.outvars]
    assert shapes == [(2 * n, m)] * 2 + [(n, n)] * 2 + [(n, m)] * 2


def test_equations_have_the_line_and_the_scope_of_the_user():
    def fun(z):
        with jax.named_scope("product"):
            return jnp.exp(z * z)

    after = check(fun, Z)
    assert all("test_complex_numbers.py" in jax_compat.source_line(eqn) for eqn in after.eqns)
    assert {jax_compat.name_stack(eqn).split("/")[0] for eqn in after.eqns} == {"product"}


@pytest.fixture
def opaque():
    """A primitive that nothing is known of."""
    primitive = jex_core.Primitive("opaque")
    primitive.def_abstract_eval(lambda x, **params: x)
    return primitive


def test_what_cannot_be_split_is_kept_on_parts(opaque):
    after = split_complex(traced(lambda z: opaque.bind(z * z, size=3), Z), ONNX)
    eqn = after.eqns[-1]
    assert eqn.primitive is UNSPLIT
    assert [var.aval.dtype for var in (*eqn.invars, *eqn.outvars)] == [np.float32] * 4
    assert eqn.params["eqn"].primitive is opaque


def test_a_legalization_says_what_a_primitive_is(opaque):
    @registry.legalization("opaque", dtypes=COMPLEX)
    def swapped(z, *, size):
        return lax.complex(lax.imag(z), lax.real(z) * size)

    try:
        after = split_complex(traced(lambda z: opaque.bind(z, size=3), Z), ONNX)
    finally:
        del registry._RULES["opaque", "consumer"]
    assert primitives(after) == ["mul"]
    found = jex_core.jaxpr_as_fun(after)(Z.real, Z.imag)
    np.testing.assert_array_equal(found, [Z.imag, Z.real * 3])


def test_why_a_legalization_refuses_is_in_the_message(opaque):
    @registry.legalization("opaque", dtypes=COMPLEX)
    def refuses(z, *, size):
        raise ValueError(f"{size} is too small")

    try:
        with pytest.raises(
            UnsupportedError, match=r"opaque\(c64.* at .*: ValueError: 3 is too small"
        ):
            tf.function(lowering.convert(lambda z: opaque.bind(z, size=3), target="onnx"))(Z)
    finally:
        del registry._RULES["opaque", "consumer"]


def test_targets_with_complex_numbers_keep_them():
    jaxpr, _ = pipeline.whole_program(traced(jnp.exp, Z), TF)
    assert primitives(jaxpr) == ["exp"]
    jaxpr, _ = pipeline.whole_program(traced(jnp.exp, Z), ONNX)
    assert not any(map(is_complex, all_dtypes(jaxpr)))


STEPS = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b / (1 + jnp.abs(a * b)),
    "divide": lambda a, b: a / (b + 3),
    "turn": lambda a, b: 1j * a,
    "conj": lambda a, b: jnp.conj(a),
    "exp": lambda a, b: jnp.exp(1j * a.real),
    "reverse": lambda a, b: a[::-1],
    "choose": lambda a, b: jnp.where(b.imag > 0, a, b),
    "sum": lambda a, b: a + b.sum() / 3,
    "call": lambda a, b: jax.jit(lambda x, y: x * y.real)(a, b),
    "cond": lambda a, b: lax.cond(a[0].real > 0, lambda: a, lambda: b * 1j),
    "scan": lambda a, b: lax.scan(lambda c, x: (c * 0.5 + x, c.imag), a[0], b)[1] + b,
    "loop": lambda a, b: lax.fori_loop(0, 2, lambda i, x: x * 0.5 + b, a),
    "real": lambda a, b: a.real + 0j * b.imag,
}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=8,
    )
)
def test_random_programs(steps):
    def fun(*values):
        values = list(values)
        for name, i, j in steps:
            values.append(STEPS[name](values[i % len(values)], values[j % len(values)]))
        return values[2:]

    check(fun, Z[0], W[0])
