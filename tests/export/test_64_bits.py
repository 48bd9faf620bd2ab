"""Programs under `jax_enable_x64`: in 32 bits where a runtime has no more, in 64 elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from lowering.errors import UnsupportedError
from lowering.export.without_64_bits import in_bits_of
from lowering.targets import ONNX, TFJS, TFLITE

X = np.random.default_rng(0).normal(size=(3, 4))
K = np.random.default_rng(1).integers(-50, 50, (3, 4))
U = np.abs(K).astype(np.uint64)

PROGRAMS = {
    "elementwise": (lambda x: (jnp.tan(x), jnp.arctan(x), jnp.log1p(jnp.abs(x)), x**-2), (X,)),
    "bits": (lambda x: (jnp.copysign(x, -x), jnp.nextafter(x, 0), jnp.signbit(x)), (X,)),
    "integers": (lambda k: (k // 7, k % 7, k ^ 3, k << 2, k >> 1, jnp.sort(k, 1), k.sum()), (K,)),
    "unsigned": (lambda u: (u - 20, u // 7, u % 7, u >> 1, jax.lax.population_count(u)), (U,)),
    "order": (lambda x: (jax.lax.top_k(x, 2), jnp.argsort(x, 1), jnp.median(x)), (X,)),
    "linear": (lambda x: (jnp.linalg.svd(x)[1], jnp.linalg.eigvalsh(x @ x.T), x @ x.T), (X,)),
    "complex": (lambda x: (jnp.abs(jnp.fft.fft(x)), jnp.real(jnp.exp(1j * x))), (X,)),
    "indices": (lambda x, k: (x[k[:, 0] % 3], jax.nn.one_hot(k % 4, 4), x.at[0].add(1.5)), (X, K)),
    "random": (lambda x: x + jax.random.normal(jax.random.key(3), x.shape), (X,)),
    "loop": (lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, x), (X,)),
}


@pytest.fixture(params=[TFLITE, TFJS], ids=lambda target: target.name)
def narrow(request, tmp_path):
    """Exports to a format without 64 bits, and verifies the result."""

    def run(fun, args, **options):
        with pytest.warns(UserWarning, match=f"{request.param.name} computes with 32 bits"):
            if request.param is TFLITE:
                export.to_tflite(fun, args, **options)
            else:
                export.to_tfjs(fun, args, tmp_path / "model", **options)

    return run


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_64_bits_are_exported_in_32(narrow, program):
    with jax.enable_x64(True):
        narrow(*PROGRAMS[program])
        assert jax.config.jax_enable_x64


def test_parameters_of_64_bits_are_exported_in_32(narrow):
    with jax.enable_x64(True):
        narrow(lambda w, x: x @ w["w"], (X,), params={"w": jnp.asarray(X.T)})


def test_closures_of_64_bits_that_jax_refuses():
    """The message says what to do."""
    with jax.enable_x64(True):
        kernel = jnp.ones((3, 3, 1, 2))
        with (
            pytest.warns(UserWarning, match="32 bits"),
            pytest.raises(TypeError) as caught,
        ):
            export.to_tflite(
                lambda x: jax.lax.conv(x, kernel, (1, 1), "SAME"), (np.ones((1, 3, 8, 8)),)
            )
    assert "pass them as params" in caught.value.__notes__[-1]


@pytest.mark.parametrize(
    "fun", [lambda k: k % 2**33, lambda k: k + jnp.asarray(2**40)], ids=["operand", "array"]
)
def test_numbers_of_more_than_32_bits(narrow, fun):
    message = r"computes with 32 bits, .*\(test_64_bits.py:\d+, in <lambda>\)"
    with jax.enable_x64(True), pytest.raises(UnsupportedError, match=message):
        narrow(fun, (K,))


def test_there_is_no_warning_without_64_bits(recwarn):
    with in_bits_of(TFLITE):
        pass
    with jax.enable_x64(True), in_bits_of(ONNX):
        assert jax.config.jax_enable_x64
    assert not recwarn


BIG = 1 << 40
HUGE = np.random.default_rng(2).integers(-(1 << 63), (1 << 63) - 1, (3, 4))
UNSIGNED = HUGE.view(np.uint64)
SMALL = X / np.array([1e-9, 1e-3, 1, 30])
OF_64_BITS = {
    "elementwise": (lambda x: (jnp.sin(x), jnp.exp(x), jnp.sqrt(jnp.abs(x)), x**-2, x % 0.3), (X,)),
    "integers": (lambda k: (k // 7, k % -7, k.sum(), k * k, k.astype("float64") / 3), (K,)),
    "large": (lambda k: (k - 1, k // 3, k % 7, jnp.sort(k, 1), k > k[::-1], k.max(1)), (K + BIG,)),
    "larger": (lambda k: (jax.lax.top_k(k, 2), jnp.maximum(k, k[::-1]), jnp.cumsum(k)), (K * BIG,)),
    "bits": (lambda k: (k & 12, k | 3, k ^ 5, ~k), (K * BIG,)),
    "bits of floats": PROGRAMS["bits"],
    "words": (
        lambda w: (
            w.astype("int64"),
            w.astype("uint64") << 32 | w.astype("uint64"),
            w.astype("float64") / 3,
            (w.astype("float64") * 0.75).astype("uint32"),
        ),
        (np.uint32([1, 0x80000001, 0xFFFFFFFF]),),
    ),
    "random": (
        lambda w: jax.random.normal(jax.random.wrap_key_data(w), (3,)),
        (np.uint32([1, 7]),),
    ),
    "order": PROGRAMS["order"],
    "indices": PROGRAMS["indices"],
    "loop": PROGRAMS["loop"],
    "linear": (
        lambda x: (x @ x.T, jnp.linalg.solve(x @ x.T, x), jnp.linalg.cholesky(x @ x.T)),
        (X,),
    ),
    "sums": (lambda k: (k.sum(), k.sum(0), k.prod(1), k.sum((0, 1), keepdims=True)), (HUGE,)),
    "sums of unsigned": (lambda u: (u.sum(1), u.prod()), (UNSIGNED,)),
    "order of unsigned": (
        lambda u: (u.max(0), u.min(1, keepdims=True), u.argmax(1), u.argmin(), jax.lax.top_k(u, 2)),
        (UNSIGNED,),
    ),
    "counts of bits": (
        lambda k, u: [f(x) for f in (jax.lax.population_count, jax.lax.clz) for x in (k, u)],
        (HUGE, UNSIGNED),
    ),
    "upper halves": (lambda k, u: (jax.lax.mulhi(k, k), jax.lax.mulhi(u, u)), (HUGE, UNSIGNED)),
    "bits as others": (
        lambda k: [jax.lax.bitcast_convert_type(k, d) for d in ("uint32", "int16", "uint8")],
        (HUGE,),
    ),
    "others as bits": (
        lambda w, h: [jax.lax.bitcast_convert_type(x, "int64") for x in (w, h)],
        (HUGE.view(np.uint32).reshape(3, 4, 2), HUGE.view(np.uint16).reshape(3, 4, 4)),
    ),
    "functions": (
        lambda x: (jnp.arctan(x), jnp.expm1(x), jnp.log1p(jnp.abs(x)), jnp.sinh(x), jnp.arcsinh(x)),
        (SMALL,),
    ),
    "angles": (
        lambda x: (jnp.arctan2(x, x[::-1]), jnp.arcsin(jnp.tanh(x)), jnp.arccos(jnp.tanh(x))),
        (SMALL,),
    ),
    "softplus": (lambda x: (jax.nn.softplus(x), jnp.cosh(x), jnp.logaddexp(x, x[::-1])), (SMALL,)),
    "windows": (
        lambda x: jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2), (1, 2), "SAME"),
        (X,),
    ),
    "random bits": (
        lambda k: [
            jax.lax.rng_bit_generator(k, (3, 2), np.uint64, algorithm)[1]
            for algorithm in map(jax.lax.RandomAlgorithm, (1, 2))
        ],
        (UNSIGNED[0, :2],),
    ),
    "sizes": (lambda k: jnp.broadcast_to(k[None] + jnp.arange(4), (2, 3, 4)), (K,)),
}

OF_ANY_SIZE = ("elementwise", "integers", "large", "bits", "sums", "order of unsigned", "loop")


@pytest.mark.parametrize(
    ("program", "symbolic"),
    [*((p, None) for p in OF_64_BITS), *((p, ["b, ..."]) for p in OF_ANY_SIZE)],
)
def test_onnx_computes_with_64_bits(program, symbolic):
    runtime = pytest.importorskip("onnxruntime")
    fun, args = OF_64_BITS[program]
    with jax.enable_x64(True):
        session = runtime.InferenceSession(export.to_onnx(fun, args, polymorphic_shapes=symbolic))
        inputs = {i.name: x for i, x in zip(session.get_inputs(), args, strict=True)}
        expected = jax.tree.leaves(jax.jit(fun)(*args))
        for e, actual in zip(expected, session.run(None, inputs), strict=True):
            assert actual.dtype == e.dtype
            is_float = np.issubdtype(e.dtype, np.floating)
            rtol, atol = (1e-12, 1e-13) if is_float else (0, 0)
            np.testing.assert_allclose(actual, e, rtol=rtol, atol=atol)


@pytest.mark.parametrize("fun", [jnp.sin, jnp.cos, jnp.tan, jax.nn.sigmoid])
def test_onnx_keeps_the_digits_of_small_results(fun):
    """Those of angles next to zeros, and of a logistic function that nearly vanishes."""
    onnxruntime = pytest.importorskip("onnxruntime")
    zeros = np.pi / 2 * np.arange(-1000, 1000)
    x = np.concatenate([zeros, np.linspace(-700, 700, 1000), [2.0e6, 1.0e15, -1.0e15, 1.0e-300]])
    with jax.enable_x64(True):
        model = export.to_onnx(fun, (x,), tolerance=1e-12)
        expected = np.asarray(jax.jit(fun)(x))
    session = onnxruntime.InferenceSession(model)
    (found,) = session.run(None, {session.get_inputs()[0].name: x})
    # XLA takes subnormal numbers for zeros.
    found = np.where(abs(found) < np.finfo(np.float64).tiny, 0, found)
    np.testing.assert_array_max_ulp(found, expected, 8)


def test_what_onnx_lacks_in_64_bits_is_exported_in_32():
    fun, args = PROGRAMS["bits"]
    with jax.enable_x64(True):
        with pytest.raises(Exception, match="cannot be lowered") as caught:
            export.to_onnx(fun, args, opset=25)
        assert "jax.enable_x64(False)" in caught.value.__notes__[-1]
    export.to_onnx(fun, args, opset=25)
