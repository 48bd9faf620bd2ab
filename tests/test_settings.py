"""The user's settings of JAX are those of the user's program alone."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
import tensorflow as tf

import lowering
from harnesses.variants import SETTINGS
from lowering import jax_compat

A = np.array([[4, 1, 0.5], [1, 3, -1], [0.25, -1, 2]], np.float32)

# Programs whose rules are written in JAX.
PROGRAMS = {
    "lu": jax.scipy.linalg.lu,
    "svd": lambda a: jnp.linalg.svd(a, compute_uv=False),
    "eigvals": lambda a: jnp.sort(jnp.abs(jnp.linalg.eigvals(a))),
    "reduce_window": lambda a: jax.lax.reduce_window(
        a, np.float32(0), lambda x, y: x * x + y, (2, 2), (1, 1), "SAME"
    ),
    "uniform": lambda a: a + jax.random.uniform(jax.random.key(3), a.shape, a.dtype),
    "loop": lambda a: jax.lax.fori_loop(0, 3, lambda i, x: x @ a, a),
    "digamma": lambda a: jax.scipy.special.digamma(jnp.abs(a)),
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_under_settings(program, settings):
    fun = PROGRAMS[program]
    with jax_compat.under(SETTINGS[settings]):
        # A new function, as JAX's caches do not tell all settings apart.
        expected = jax.jit(lambda a: fun(a))(A)
        actual = tf.function(lowering.convert(fun), autograph=False)(A)
        jax.tree.map(
            lambda e, a: np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5),
            expected,
            tuple(actual) if isinstance(expected, tuple) else actual,
        )


@pytest.mark.parametrize("settings", SETTINGS)
def test_symbolic_sizes_under_settings(settings):
    def fun(x):
        return jax.lax.reduce_window(
            x, np.float32(0), jax.lax.add, (x.shape[0],), (1,), "SAME"
        ) * jnp.float32(x.shape[0])

    with jax_compat.under(SETTINGS[settings]):
        converted = lowering.convert(fun, polymorphic_shapes="b")
        graph = tf.function(converted, input_signature=[tf.TensorSpec([None])], autograph=False)
        for size in (1, 3, 4):
            x = np.arange(size, dtype=np.float32)
            np.testing.assert_allclose(graph(x), jax.jit(fun)(x))


def test_the_gradient_is_traced_under_the_settings_of_the_program():
    x = tf.Variable([1.0, 2.0], dtype=tf.float64)
    graph = tf.function(lowering.convert(lambda x: (x**3).sum()))
    with jax.enable_x64(True), tf.GradientTape() as tape:
        y = graph(x)
    np.testing.assert_allclose(tape.gradient(y, x), [3.0, 12.0])


def test_settings_that_change_the_program_change_its_conversion():
    converted = lowering.convert(lambda: jax.random.key_data(jax.random.key(1)))
    words = converted().numpy()
    with jax.default_prng_impl("rbg"):
        other = converted().numpy()
    assert words.shape == (2,)
    assert other.shape == (4,)
    np.testing.assert_array_equal(converted(), words)


def test_settings_are_left_as_they_were():
    before = jax_compat.settings()
    lowering.convert(jnp.linalg.svd)(A)
    with jax.numpy_rank_promotion("raise"):
        inside = jax_compat.settings()
        lowering.convert(jnp.linalg.det)(A)
        assert jax_compat.settings() == inside
    assert jax_compat.settings() == before


def test_a_mesh_of_the_user_is_not_that_of_decompositions():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    with jax.set_mesh(mesh):
        np.testing.assert_allclose(
            lowering.convert(jax.scipy.linalg.lu)(A)[2], jax.scipy.linalg.lu(A)[2], atol=1e-6
        )


def test_all_settings_that_a_trace_depends_on_are_ours_or_do_not_matter_to_us():
    """A new setting of JAX has to be given a value, or to be listed here."""
    irrelevant = {
        # Contexts, of which ours has none.
        "abstract_mesh_context_manager",
        "axis_env_state",
        "compute_on_context_manager",
        "layout_tracing_mode",
        "mesh_context_manager",
        "pallas_dynamic_shapes_export",
        "pallas_grid_context",
        "pallas_tpu_interpret_mode_context_manager",
        "user_context",
        "xla_metadata_context_manager",
        # How XLA compiles a program.
        "jax_accurate_erf_inv",
        "jax_embedded_constants_max_bytes",
        "jax_enable_pgle",
        "jax_hlo_source_file_canonicalization_regex",
        "jax_pallas_enable_debug_checks",
        "jax_pallas_use_mosaic_gpu",
        "jax_ragged_dot_use_gpu_pallas_triton_lowering",
        "jax_pgle_profiling_runs",
        "jax_threefry_gpu_kernel_lowering",
        "jax_use_emit_pipeline_primitive",
        "jax_use_hlo_logistic_lowering",
        "jax_use_shardy_partitioner",
        "jax_xla_profile_version",
    }
    assert set(jax_compat.trace_settings()) <= jax_compat.settings().keys() | irrelevant
