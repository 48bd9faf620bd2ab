"""The only module that imports private JAX names or knows of differences between JAX versions."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax._src import callback as jax_callback
from jax._src import config as jax_config
from jax._src import core, dispatch, effects, linear_util, source_info_util
from jax._src.export import shape_poly
from jax._src.interpreters import ad, batching, mlir, partial_eval
from jax._src.lax import special
from jax._src.lib import _jax
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import func as func_dialect
from jax._src.random import prng
from jax._src.state import discharge
from jax._src.state.types import AbstractRef

Dim = Any  # An int or one of JAX's symbolic dimensions.

# The debug information of jaxprs that no function of a user was traced to.
_DEBUG_INFO = linear_util.DebugInfo("lowering", "<unknown>", None, None)


# The settings of JAX under which functions of this package are traced: those of a new process, but
# for 64-bit types. Settings that an installed version lacks are ignored.
_OUR_SETTINGS: Mapping[str, Any] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax_allow_f16_reductions": True,
    "jax_auto_pcast": True,
    "jax_check_static_indices": False,
    "jax_check_tracer_leaks": False,
    "jax_custom_jvp3": False,
    "jax_custom_vjp3": False,
    "jax_debug_infs": False,
    "jax_debug_key_reuse": False,
    "jax_debug_nans": False,
    "jax_default_device": None,
    "jax_default_matmul_precision": None,
    "jax_default_prng_impl": "threefry2x32",
    "jax_disable_bwd_checks": False,
    "jax_disable_jit": False,
    "jax_enable_checks": False,
    "jax_enable_custom_prng": False,
    "jax_enable_x64": True,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_explicit_x64_dtypes": "allow",
    "jax_high_dynamic_range_gumbel": False,
    "jax_legacy_prng_key": "allow",
    "jax_mutable_array_checks": True,
    "jax_no_collectives": frozenset(),
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_raise_on_ppermute_sort_diff": False,
    "jax_random_seed_offset": 0,
    "jax_remat3": False,
    "jax_remat_barrier_no_cotangents": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_scan3": False,
    "jax_softmax_custom_jvp": False,
    "jax_threefry_partitionable": True,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
    "jax_transfer_guard_host_to_device": None,
    "jax_use_direct_linearize": True,
    "jax_use_simplified_jaxpr_constants": False,
}


def settings() -> Mapping[str, Any]:
    """The settings of JAX, by name, that what it traces now depends on."""
    states = jax_config.config_states
    return {name: states[name].value for name in _OUR_SETTINGS if name in states}


def trace_settings() -> Sequence[str]:
    """The names of all settings that JAX says a trace depends on; none before JAX 0.12."""
    names: Callable[[], Sequence[str]] = getattr(jax_config, "trace_context_names", tuple)
    try:
        return names()
    except NotImplementedError:
        return ()


def trace_context() -> Any:
    """A hashable value that differs where the trace of a function may differ."""
    return jax_config.trace_context(), *settings().values()


@contextlib.contextmanager
def under(values: Mapping[str, Any]) -> Iterator[None]:
    """A context in which settings of JAX have other values, in this thread."""
    with contextlib.ExitStack() as stack:
        for name, value in values.items():
            state = jax_config.config_states.get(name)
            if state is not None and state.value != value:
                stack.enter_context(state(value))
        yield


@contextlib.contextmanager
def our_settings() -> Iterator[None]:
    """A context in which functions of this package are traced, whatever the user's settings are.

    64-bit types are enabled, and there is no mesh.
    """
    with under(_OUR_SETTINGS), jax.sharding.use_abstract_mesh(_NO_MESH):
        yield


_NO_MESH = jax.sharding.AbstractMesh((), ())


def in_transformation() -> bool:
    """Whether JAX is tracing: we are called from inside `jit`, `grad`, `vmap` or the like."""
    return not core.trace_state_clean()


@contextlib.contextmanager
def outside_of_tracing() -> Iterator[None]:
    """A context in which JAX computes at once, as if no function were being traced."""
    context = core.trace_ctx
    trace, axes = context.trace, context.axis_env
    context.set_trace(core.eval_trace)
    context.set_axis_env(core.top_axis_env)
    try:
        yield
    finally:
        context.set_trace(trace)
        context.set_axis_env(axes)


def eliminate_dead_code(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """The closed jaxpr without equations that neither an output nor an effect needs."""
    live, _ = partial_eval.dce_jaxpr(jaxpr.jaxpr, [True] * len(jaxpr.outvars), instantiate=True)
    return jex_core.ClosedJaxpr(live, jaxpr.consts)


def cpu_primitives() -> frozenset[str]:
    """The names of the primitives that the installed JAX can lower for the CPU."""
    return frozenset(_cpu_primitives())


def cpu_primitive(name: str) -> Any:
    """A primitive that the installed JAX can lower for the CPU, by name; None if it cannot."""
    return _cpu_primitives().get(name)


@functools.cache
def _public_primitives() -> dict[str, Any]:
    names = vars(jex_core.primitives).values()
    return {value.name: value for value in names if isinstance(value, jex_core.Primitive)}


def is_namesake(primitive: Any) -> bool:
    """Whether a primitive is not JAX's, but has the name of one that is."""
    return _public_primitives().get(primitive.name, primitive) is not primitive


def implementations(primitive: Any) -> list[Callable[..., Any]]:
    """The functions, in JAX, of operands and parameters that say what a primitive computes.

    They are what JAX expands it to while it traces a program for its compiler, its `impl`, and the
    function that its lowering to MLIR was made of, as far as it has them. JAX's own `impl` is none:
    it compiles the primitive.
    """
    found = []
    if getattr(primitive.to_lojax, "__func__", None) is not core.Primitive.to_lojax:
        found.append(primitive.to_lojax)
    is_undefined = getattr(primitive.impl, "__func__", None) is core.Primitive.impl
    is_compiled = getattr(primitive.impl, "func", None) is dispatch.apply_primitive
    if not is_undefined and not is_compiled:
        found.append(primitive.impl)
    for rules in (mlir._platform_specific_lowerings["cpu"], mlir._lowerings):
        lower: Any = rules[primitive].rule if primitive in rules else None
        if getattr(lower, "__code__", None) is _LOWERED_FUNCTION.__code__:
            found.append(inspect.getclosurevars(lower).nonlocals["fun"])
    return found


_LOWERED_FUNCTION = mlir.lower_fun(lambda: ())


def _cpu_primitives() -> dict[str, Any]:
    rules = (mlir._lowerings, mlir._platform_specific_lowerings["cpu"])
    return {p.name: p for p in itertools.chain(*rules) if p not in _DEFINED}


# The primitives of ours that JAX can lower.
_DEFINED: set[Any] = set()


def with_equations(
    jaxpr: jex_core.ClosedJaxpr,
    invars: Sequence[Any],
    outvars: Sequence[Any],
    eqns: Sequence[jex_core.JaxprEqn],
) -> jex_core.ClosedJaxpr:
    """A closed jaxpr with the constants of another, but other inputs, results and equations."""
    return closed(jaxpr.constvars, jaxpr.consts, invars, outvars, eqns)


def closed(
    constvars: Sequence[Any],
    consts: Sequence[Any],
    invars: Sequence[Any],
    outvars: Sequence[Any],
    eqns: Sequence[jex_core.JaxprEqn],
) -> jex_core.ClosedJaxpr:
    """A closed jaxpr, with the effects of its equations."""
    done = frozenset().union(*(eqn.effects for eqn in eqns if eqn.effects))
    jaxpr = open_jaxpr(constvars, invars, outvars, eqns, done)
    return jex_core.ClosedJaxpr(jaxpr, list(consts))


def open_jaxpr(
    constvars: Sequence[Any],
    invars: Sequence[Any],
    outvars: Sequence[Any],
    eqns: Sequence[jex_core.JaxprEqn],
    effects: Any = frozenset(),
) -> jex_core.Jaxpr:
    """An open jaxpr. JAX warns of those that do not say what they were traced from."""
    parts = map(list, (constvars, invars, outvars, eqns))
    return jex_core.Jaxpr(*parts, effects, debug_info=_DEBUG_INFO)


def jaxpr_of(eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
    """The jaxpr of one equation, which has no literals."""
    return closed((), (), eqn.invars, eqn.outvars, [eqn])


def name_stack(eqn: jex_core.JaxprEqn) -> str:
    """The scopes (named scopes, transformations) around an equation, separated by slashes."""
    return str(eqn.source_info.name_stack)


# The lines of this package are not the user's.
source_info_util.register_exclusion(os.path.dirname(__file__) + os.sep)

# The traceback of equations of this package, by which they are told from the user's.
_NO_SOURCE = source_info_util.current().traceback


def source_line(eqn: jex_core.JaxprEqn) -> str:
    """The user's line that an equation comes from, as `file:line (function)`; empty if unknown."""
    return source_info_util.summarize(eqn.source_info) if has_source(eqn) else ""


def has_source(eqn: jex_core.JaxprEqn) -> bool:
    """Whether a line of the user's is known that an equation comes from."""
    traceback = eqn.source_info.traceback
    if traceback is None or traceback is _NO_SOURCE:
        return False
    return any(True for _ in source_info_util.user_frames(traceback))


def of_user(eqn: jex_core.JaxprEqn, outer: jex_core.JaxprEqn | None) -> jex_core.JaxprEqn:
    """What to name for an equation that is made within another one of the user's program.

    It is the outer one for an equation of this package. One of JAX has the outer one's line.
    """
    if outer is None or has_source(eqn):
        return eqn
    return outer if eqn.source_info.traceback is _NO_SOURCE else within(eqn, outer)


@contextlib.contextmanager
def without_source() -> Iterator[None]:
    """A context in which traced equations have no line; those of earlier traces keep theirs."""
    local = source_info_util._source_info_context
    before = local.context
    local.context = before.replace(traceback=_NO_SOURCE)
    try:
        yield
    finally:
        local.context = before


def within(eqn: jex_core.JaxprEqn, outer: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
    """An equation in place of `outer`, with the scopes of both.

    It has the line of `outer` if it has no line of the user's, such as one of this package.
    """
    source, around = eqn.source_info, outer.source_info
    if around.name_stack.stack:
        source = source.replace(name_stack=around.name_stack + source.name_stack)
    if not has_source(eqn):
        source = source.replace(traceback=around.traceback)
    return eqn if source is eqn.source_info else eqn.replace(source_info=source)


@contextlib.contextmanager
def source_and_settings(eqn: jex_core.JaxprEqn) -> Iterator[None]:
    """A context in which traced equations get the source and settings of `eqn`, but no mesh."""
    stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
    with (
        source_info_util.user_context(eqn.source_info.traceback, name_stack=stack),
        jax_config.threefry_partitionable(threefry_partitionable(eqn)),
    ):
        yield


def map_jaxpr(
    jaxpr: jex_core.ClosedJaxpr,
    name: str,
    axes: Mapping[str, int],
    in_axes: Sequence[int | None],
    out_axes: Sequence[int | None],
) -> tuple[jex_core.ClosedJaxpr, list[bool]]:
    """Maps a closed jaxpr over a named axis, as `jax.vmap` maps a function.

    Args:
      jaxpr: a closed jaxpr.
      name: the name of the axis.
      axes: the sizes of all named axes that the jaxpr may speak of.
      in_axes: which dimension of each input is the axis; None if it is not mapped.
      out_axes: which dimension of each result is to be the axis. Where it is None, a result that
        differs along the axis gets a leading dimension.

    Returns:
      The mapped jaxpr, and which of its results have a dimension for the axis.
    """
    axis = batching.AxisData(name, axes[name], None, None)
    destinations = [batching.zero_if_mapped if place is None else place for place in out_axes]
    with core.extend_axis_env_nd(list(axes.items())):
        return batching.batch_jaxpr_axes(jaxpr, axis, list(in_axes), destinations)


def can_be_mapped(primitive: Any) -> bool:
    """Whether `jax.vmap` knows how to map a primitive."""
    return primitive in batching.fancy_primitive_batchers


def map_elements(primitive: Any) -> None:
    """Lets `jax.vmap` map a primitive that treats each element of its operand alike."""
    batching.defvectorized(primitive)


def unreduced_kind(spec: jax.sharding.PartitionSpec) -> str:
    """How the parts of an unreduced value are to be combined: "sum", "max" or "min"."""
    kind = getattr(spec, "unreduced_kind", None)
    return "sum" if kind is None else kind.name


def scan_counts(params: Mapping[str, Any]) -> tuple[int, int]:
    """How many operands of a `scan` are constants and how many are carried."""
    if "num_carry" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(list(consts)), len(list(carry))


def with_scan_body(
    params: Mapping[str, Any], body: jex_core.ClosedJaxpr, num_consts: int, num_carry: int
) -> dict[str, Any]:
    """Parameters of a `scan` with another body, which may have other numbers of operands."""
    if "num_carry" in params:
        return {**params, "jaxpr": body, "num_consts": num_consts, "num_carry": num_carry}
    flattree: Any = importlib.import_module("jax._src.flattree")
    num_xs, num_ys = len(body.in_avals) - num_consts - num_carry, len(body.out_avals) - num_carry
    groups = {"ft_in": (num_consts, num_carry, num_xs), "ft_out": (num_carry, num_ys)}
    packed = {name: flattree.pack(tuple(map(flattree.nones, n))) for name, n in groups.items()}
    return {**params, **packed, "jaxpr": body}


def check_equation(eqn: jex_core.JaxprEqn) -> None:
    """Checks that the types of an equation are those that JAX gives it, in its jaxprs as well.

    Raises:
      TypeError: if they are not.
    """
    operands = dict.fromkeys(x for x in eqn.invars if not isinstance(x, jex_core.Literal))
    one = open_jaxpr([], list(operands), eqn.outvars, [eqn], eqn.effects)
    try:
        core.check_jaxpr(one)
    except TypeError:
        # The dtypes of sizes depend on the setting, which may be another than at tracing.
        with jax.enable_x64(not jax.config.read("jax_enable_x64")):
            core.check_jaxpr(one)


def evaluate_dim(dim: Dim, variables: Mapping[str, Any], ops: Mapping[str, Callable]) -> Any:
    """The value of a symbolic dimension.

    Args:
      dim: an int or a symbolic dimension.
      variables: the values of the dimension variables, by name.
      ops: functions of two values named "add", "mul", "floordiv", "mod", "max" and "min".
    """

    def expression(expr):
        if isinstance(expr, int):
            return expr
        terms = []
        for term, coefficient in expr._sorted_terms:
            factors = [factor_ for f, power in term._factors for factor_ in [factor(f)] * power]
            if coefficient != 1 or not factors:
                factors.append(coefficient)
            terms.append(reduce("mul", factors))
        return reduce("add", terms)

    def factor(f):
        if f.var is not None:
            return variables[f.var]
        return reduce(f.operation, [expression(operand) for operand in f.operands])

    def reduce(op: str, values: Sequence[Any]):
        result, *rest = values
        for value in rest:
            result = ops[op](result, value)
        return result

    return expression(dim)


def dim_variables(dim: Dim) -> frozenset[str]:
    """The names of the dimension variables that a dimension depends on."""
    return frozenset() if isinstance(dim, int) else frozenset(dim._get_vars())


# The larger and the smaller of two dimensions, which may be symbolic.
max_dim, min_dim = core.max_dim, core.min_dim
# The size of an axis whose elements are so far apart: of its size and that distance.
dilate_dim = core.dilate_dim
# How many windows an axis has room for: of its size, their extent and the distance between them.
stride_dim = core.stride_dim


def linear_in(dim: Dim, unknown: frozenset[str]) -> tuple[dict[str, Dim], Dim] | None:
    """A dimension as `sum(coefficient * variable) + rest` over the unknown variables in it.

    Args:
      dim: an int or a symbolic dimension.
      unknown: names of variables. Coefficients and rest depend on others only.

    Returns:
      The coefficient of each unknown variable in `dim`, and the rest; None if `dim` is not linear
      in them.
    """
    coefficients: dict[str, Dim] = {}
    rest: Dim = 0
    for term, coefficient in () if isinstance(dim, int) else dim._sorted_terms:
        names = term.get_vars() & unknown
        if not names:
            rest = rest + _from_factors(term._factors, coefficient, dim.scope)
            continue
        others = [(f, power) for f, power in term._factors if not f.get_vars() & names]
        mine = [(f, power) for f, power in term._factors if f.get_vars() & names]
        ((factor, power), *more) = mine
        if more or power != 1 or factor.var is None:
            return None
        slope = _from_factors(others, coefficient, dim.scope)
        coefficients[factor.var] = coefficients.get(factor.var, 0) + slope
    return coefficients, (dim if isinstance(dim, int) else rest)


def _from_factors(factors: Sequence[Any], coefficient: int, scope: Any) -> Dim:
    """The product of factors with their powers and of a coefficient."""
    term = shape_poly._DimTerm(tuple(factors))
    return shape_poly._DimExpr._from_term(term, coefficient, scope)


def dim_constraints(scope: Any) -> list[tuple[str, bool, Dim]]:
    """The constraints of a scope that the user gave or that JAX derives from them.

    Returns:
      For each its text, whether it is an equality, and a dimension that is to be zero if it is
      one and else at least zero.
    """
    equal = shape_poly.Comparator.EQ
    return [(c.debug_str, c.cmp == equal, c.diff) for c in scope._explicit_constraints]


def variable_in_scope(name: str, scope: Any) -> Dim:
    """What JAX takes a dimension variable for: itself, unless a constraint says what it equals."""
    return shape_poly._DimExpr._from_var(name, scope)


def makes_references(jaxpr: jex_core.ClosedJaxpr) -> bool:
    """Whether a jaxpr makes references, and is given none."""
    is_given = any(isinstance(aval, AbstractRef) for aval in jaxpr.in_avals)
    makes = any(isinstance(effect, core.InternalMutableArrayEffect) for effect in jaxpr.effects)
    return makes and not is_given


def without_references(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A jaxpr that does with values what another does with the references that it makes."""
    return discharge.discharge_state(jaxpr)


def run_state(*operands: Any, **params: Any) -> Sequence[Any]:
    """What the primitive `run_state` computes, without references."""
    return _cpu_primitives()["run_state"].impl(*operands, **params)


def evaluate(
    eqn: jex_core.JaxprEqn,
    operands: Sequence[Any],
    shapes: Mapping[int, tuple[int, ...]] | None = None,
) -> list[Any]:
    """Runs one equation on arrays with JAX itself; PRNG keys are given as key data.

    Args:
      eqn: the equation.
      operands: arrays.
      shapes: of a callback, the shapes of the results that are symbolic, by position.
    """
    with our_settings(), eqn.ctx.manager:
        values = [
            jax.random.wrap_key_data(x, impl=key_impl(var.aval.dtype))
            if jax.dtypes.issubdtype(var.aval.dtype, jax.dtypes.prng_key)
            else x
            for x, var in zip(operands, eqn.invars, strict=True)
        ]
        callback = _CALLBACKS.get(eqn.primitive.name)
        if callback is not None:
            return _checked(callback(*values, **eqn.params), eqn, shapes or {})
        params = eqn.primitive.get_bind_params(eqn.params)
        results = eqn.primitive.bind(*values, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


# Implementations of callbacks that run them at once. JAX would compile a program for each that is
# bound, and keep it and the callback.
_CALLBACKS: dict[str, Callable[..., Any]] = {
    "pure_callback": jax_callback.pure_callback_impl,
    "io_callback": jax_callback.io_callback_impl,
}


def _checked(
    results: Sequence[Any], eqn: jex_core.JaxprEqn, shapes: Mapping[int, tuple[int, ...]]
) -> list[np.ndarray]:
    """What a callback has returned, if its shapes and dtypes are those of the equation."""
    arrays = [np.asarray(x) for x in results]
    for i, (x, var) in enumerate(zip(arrays, eqn.outvars, strict=True)):
        shape = shapes.get(i, var.aval.shape)
        for what, expected in (("shape", shape), ("dtype", var.aval.dtype)):
            actual = getattr(x, what)
            if expected != actual:
                raise RuntimeError(
                    f"incorrect {what} of result {i} of a callback: {actual}, not {expected}"
                )
    return arrays


def physical_dtype(dtype: Any) -> np.dtype:
    """The dtype of the arrays that represent arrays of an extended dtype."""
    return np.dtype(core.physical_element_aval(dtype).dtype)


def key_shape(dtype: Any) -> tuple[int, ...]:
    """The shape of the data of one PRNG key."""
    return dtype._impl.key_shape


def key_impl(dtype: Any) -> Any:
    """The implementation of PRNG keys of a dtype, which is hashable."""
    return dtype._impl


def threefry_partitionable(eqn: jex_core.JaxprEqn) -> bool:
    """The value of `jax_threefry_partitionable` under which an equation was traced."""
    return eqn.ctx.threefry_partitionable


def random_seed(seeds: Any, *, impl: Any, partitionable: bool) -> Any:
    """The data of the keys for seeds. All `random_*` are of key data in place of keys."""
    # With 64 bits, the promotion of integers to int64 would reach programs that have none.
    with jax.enable_x64(seeds.dtype.itemsize > 4):
        return _call(prng.random_seed_impl_base, partitionable, seeds, impl=impl)


def random_split(keys: Any, *, impl: Any, shape: tuple[Dim, ...], partitionable: bool) -> Any:
    """The data of `shape` keys made from each key."""
    ndim = keys.ndim - len(impl.key_shape)
    return _call(prng.random_split_impl_base, partitionable, impl, keys, ndim, shape=shape)


def random_fold_in(keys: Any, data: Any, *, impl: Any, partitionable: bool) -> Any:
    """The data of the keys made from each key and an integer."""
    shape = keys.shape[: keys.ndim - len(impl.key_shape)]
    return _call(prng.random_fold_in_impl_base, partitionable, impl, keys, data, shape)


def random_bits(
    keys: Any, *, impl: Any, bit_width: int, shape: tuple[Dim, ...], partitionable: bool
) -> Any:
    """Arrays of random bits of `shape` for each key."""
    ndim = keys.ndim - len(impl.key_shape)
    sizes = {"bit_width": bit_width, "shape": shape}
    return _call(prng.random_bits_impl_base, partitionable, impl, keys, ndim, **sizes)


def random_gamma(keys: Any, alpha: Any, *, impl: Any, log_space: bool, partitionable: bool) -> Any:
    """Samples of the gamma distribution with shapes `alpha`, as many for each key as it has."""
    key = jax.random.wrap_key_data(keys, impl=impl)
    sample = jex_core.primitives.random_gamma_p.impl
    return _call(sample, partitionable, key, alpha, log_space=log_space, use_vmap=True)


def _call(fun: Callable[..., Any], partitionable: bool, *args: Any, **kwargs: Any) -> Any:
    with jax_config.threefry_partitionable(partitionable):
        return fun(*args, **kwargs)


def _in_own_dtype(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX in the dtype of its operands; its counters are of no more bits."""

    def in_own_dtype(*operands):
        dtype = operands[0].dtype
        with jax.enable_x64(dtype.itemsize > 4):
            return fun(*operands, dtype=dtype)

    return in_own_dtype


# Primitives for which JAX has no op of XLA, but a function of arrays of one shape, in float32 or
# float64. Its versions differ in numbers of steps, and at infinity.
SPECIAL_FUNCTIONS = {
    "igamma": _in_own_dtype(special.igamma_impl),
    "igammac": _in_own_dtype(special.igammac_impl),
    "igamma_grad_a": _in_own_dtype(special.igamma_grad_a_impl),
    "regularized_incomplete_beta": _in_own_dtype(special.regularized_incomplete_beta_impl),
}

# The value of digamma at its pole at zero; at the other poles it is NaN.
DIGAMMA_AT_ZERO = -np.inf if jax.__version_info__ >= (0, 12) else np.nan


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What a compiler other than JAX's has made of a function, to be called in a JAX program.

    Attributes:
      hlo: the function as a serialized HLO module; it returns at least one array.
      captured: arrays that it takes after its operands.
    """

    hlo: bytes
    captured: Sequence[np.ndarray]


class _CallEffect(effects.Effect):
    """The effect of a call that may do something beside returning its results."""

    def __str__(self) -> str:
        return "Call"


for _types in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    effects.remat_allowed_effects,
):
    _types.add_type(_CallEffect)

# Ordered calls are ordered with JAX's own callbacks, too.
_EFFECTS: Mapping[str | None, set[Any]] = {
    None: set(),
    "unordered": {_CallEffect()},
    "ordered": {jax_callback._OrderedIOEffect},
}


def define_call(
    primitive: Any,
    *,
    run: Callable[..., Sequence[Any]],
    results: Callable[..., Sequence[Any]],
    effect: Callable[..., str | None],
    differentiate: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    transpose: Callable[..., Sequence[Any]],
    batch: Callable[..., tuple[Sequence[Any], Sequence[int | None]]],
    compile: Callable[..., Compiled | Callable[..., Any] | None],
) -> None:
    """Tells JAX what a primitive of ours does that calls something other than JAX.

    It has several results. All functions take the parameters of an equation as keywords.

    Args:
      primitive: the primitive.
      run: its results on concrete arrays.
      results: the abstract values of its results, given those of its operands.
      effect: whether it does something beside returning these, given the same: None for nothing,
        "unordered", or "ordered" if such calls have to stay in their order.
      differentiate: its results and their tangents, given operands and tangents. None stands for a
        tangent that is zero.
      transpose: the cotangents of its last operands, in which it is linear, given those of its
        results, its first operands, and the abstract values of the last ones.
      batch: its results and which of their dimensions is mapped, given the size of the mapped
        dimension and the operands, with which of them have it, as their first one.
      compile: given the platform, the abstract values of operands, and those of results, either
        what another compiler has made of it, or a function of NumPy arrays to call back, or None if
        there is nothing to do.
    """

    def abstract_eval(*avals, **params):
        found = [core.ShapedArray(x.shape, x.dtype) for x in results(*avals, **params)]
        if core.standard_vma_rule(primitive.name, *avals):
            found = [_varying_as(avals[0], x) for x in found]
        return found, _EFFECTS[effect(*avals, **params)]

    def jvp(primals, tangents, **params):
        given = [None if isinstance(t, ad.Zero) else t for t in tangents]
        outs, out_tangents = differentiate(primals, given, **params)
        zeros = [ad.p2tz(y) for y in outs]
        made = [zero if t is None else t for zero, t in zip(zeros, out_tangents, strict=True)]
        return list(outs), made

    def transposed(cotangents, *operands, **params):
        unknown = [x.aval for x in operands if ad.is_undefined_primal(x)]
        known = [x for x in operands if not ad.is_undefined_primal(x)]
        given = list(map(ad.instantiate_zeros, cotangents))
        return [*[None] * len(known), *transpose(given, known, unknown, **params)]

    def batched(operands, dims, **params):
        is_mapped = [dim is not None for dim in dims]
        pairs = zip(operands, dims, is_mapped, strict=True)
        moved = [batching.moveaxis(x, dim, 0) if mapped else x for x, dim, mapped in pairs]
        size = next(x.shape[0] for x, mapped in zip(moved, is_mapped, strict=True) if mapped)
        return batch(size, moved, is_mapped, **params)

    def lower(ctx, *operands, **params):
        platforms = ctx.platforms or ctx.module_context.platforms
        made = compile(platforms, ctx.avals_in, ctx.avals_out, **params)
        if isinstance(made, Compiled):
            ctx.set_tokens_out(ctx.tokens_in)
            return _call_compiled(ctx, made, operands, primitive.name)
        if made is None:
            ctx.set_tokens_out(ctx.tokens_in)
            return []
        structs = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.avals_out]
        kind = effect(*ctx.avals_in, **params)

        def call_back(*args):
            if kind is None:
                return jax.pure_callback(made, structs, *args)
            return jax.experimental.io_callback(made, structs, *args, ordered=kind == "ordered")

        return mlir.lower_fun(call_back, multiple_results=True)(ctx, *operands)

    _DEFINED.add(primitive)
    primitive.multiple_results = True
    primitive.def_impl(run)
    primitive.def_effectful_abstract_eval(abstract_eval)
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transposed
    batching.primitive_batchers[primitive] = batched
    mlir.register_lowering(primitive, lower, cacheable=False)
    dispatch.prim_requires_devices_during_lowering.add(primitive)


# The ops that give a known shape for operands of any sizes, all of whose elements count.
_OF_ANY_SIZES = frozenset(
    f"stablehlo.{name}" for name in ("dot_general", "get_dimension_size", "reduce", "while", "case")
)


def takes_bounds_for_sizes(hlo: bytes) -> bool:
    """Whether a compiled function gives a known size to what has a size that XLA only bounds.

    Where the size is another, XLA checks nothing: the elements that are lacking are any numbers.

    Args:
      hlo: the function as a serialized HLO module. JAX has to be lowering a program.
    """
    module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo))
    main: Any = ir.SymbolTable(module.operation)["main"]
    found = [x for x in main.type.results if not _is_of_known_shape(x)]

    def look_at(operation):
        is_known = all(_is_of_known_shape(x.type) for x in operation.results)
        if operation.name not in _OF_ANY_SIZES and operation.results and is_known:
            found.extend(x for x in operation.operands if not _is_of_known_shape(x.type))
        return ir.WalkResult.ADVANCE

    module.operation.walk(look_at)
    return bool(found)


def _is_of_known_shape(kind: Any) -> bool:
    return not isinstance(kind, ir.ShapedType) or kind.has_static_shape


def _varying_as(one: Any, other: Any) -> Any:
    """An abstract value that differs along the axes of `shard_map` along which another does."""
    replicated = jax.sharding.PartitionSpec(*[None] * other.ndim)
    return other.update(sharding=one.sharding.update(spec=replicated), manual_axis_type=one.mat)


def _call_compiled(ctx: Any, compiled: Compiled, operands: Sequence[Any], name: str) -> Any:
    """Makes a compiled function part of the module that JAX lowers, and calls it there."""
    module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(compiled.hlo))
    main: Any = ir.SymbolTable(module.operation)["main"]
    types = main.type.results
    expected = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
    if list(types) != expected:
        raise TypeError(f"it is compiled to return {list(map(str, types))}")
    symbols = ctx.module_context.symbol_table
    merged = mlir.merge_mlir_modules(ctx.module_context.module, name, module, dst_symtab=symbols)
    captured = [mlir.ir_constant(array) for array in compiled.captured]
    callee = ir.FlatSymbolRefAttr.get(merged)
    return func_dialect.CallOp(types, callee, [*operands, *captured]).results
