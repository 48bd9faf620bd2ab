"""The only module that imports private JAX names or knows of differences between JAX versions."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax._src import config as jax_config
from jax._src import core, source_info_util
from jax._src.interpreters import batching, mlir, partial_eval
from jax._src.random import prng

Dim = Any  # An int or one of JAX's symbolic dimensions.


def enable_x64() -> Any:
    """A context manager under which JAX does not truncate 64-bit dtypes."""
    return jax_config.enable_x64(True)


def in_transformation() -> bool:
    """Whether JAX is tracing: we are called from inside `jit`, `grad`, `vmap` or the like."""
    return not core.trace_state_clean()


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


def _cpu_primitives() -> dict[str, Any]:
    rules = (mlir._lowerings, mlir._platform_specific_lowerings["cpu"])
    return {primitive.name: primitive for primitive in itertools.chain(*rules)}


def with_equations(
    jaxpr: jex_core.ClosedJaxpr,
    invars: Sequence[Any],
    outvars: Sequence[Any],
    eqns: Sequence[jex_core.JaxprEqn],
) -> jex_core.ClosedJaxpr:
    """A closed jaxpr with the constants of another, but other inputs, results and equations."""
    inner = jex_core.Jaxpr(list(jaxpr.constvars), list(invars), list(outvars), list(eqns))
    return jex_core.ClosedJaxpr(inner, list(jaxpr.consts))


def jaxpr_of(eqn: jex_core.JaxprEqn) -> jex_core.ClosedJaxpr:
    """The program that one equation without literals is."""
    return jex_core.ClosedJaxpr(jex_core.Jaxpr([], list(eqn.invars), list(eqn.outvars), [eqn]), [])


def name_stack(eqn: jex_core.JaxprEqn) -> str:
    """The scopes (named scopes, transformations) around an equation, separated by slashes."""
    return str(eqn.source_info.name_stack)


def source_line(eqn: jex_core.JaxprEqn) -> str:
    """The user's line that an equation comes from, as `file:line (function)`."""
    return source_info_util.summarize(eqn.source_info)


def within_scope(eqn: jex_core.JaxprEqn, outer: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
    """An equation of a jaxpr that `outer` calls, with the scopes around both."""
    if not outer.source_info.name_stack.stack:
        return eqn
    stack = outer.source_info.name_stack + eqn.source_info.name_stack
    return eqn.replace(source_info=eqn.source_info.replace(name_stack=stack))


@contextlib.contextmanager
def source_and_settings(eqn: jex_core.JaxprEqn) -> Iterator[None]:
    """Equations that are traced under it have the source and settings of `eqn`, but no mesh."""
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


def with_scan_counts(params: Mapping[str, Any], num_consts: int, num_carry: int) -> dict[str, Any]:
    """Parameters of a `scan` with other numbers of operands, in the form of JAX 0.10."""
    others = {name: value for name, value in params.items() if name not in ("ft_in", "ft_out")}
    return {**others, "num_consts": num_consts, "num_carry": num_carry}


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


def run_state(*operands: Any, **params: Any) -> Sequence[Any]:
    """What the primitive `run_state` computes, without references."""
    return _cpu_primitives()["run_state"].impl(*operands, **params)


def evaluate(eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """Runs one equation on arrays with JAX itself; PRNG keys are given as their words."""
    with enable_x64(), eqn.ctx.manager:
        values = [
            jax.random.wrap_key_data(x, impl=key_impl(var.aval.dtype))
            if jax.dtypes.issubdtype(var.aval.dtype, jax.dtypes.prng_key)
            else x
            for x, var in zip(operands, eqn.invars, strict=True)
        ]
        params = eqn.primitive.get_bind_params(eqn.params)
        results = eqn.primitive.bind(*values, **params)
    return list(results) if eqn.primitive.multiple_results else [results]


def physical_dtype(dtype: Any) -> np.dtype:
    """The dtype of the arrays that represent arrays of an extended dtype."""
    return np.dtype(core.physical_element_aval(dtype).dtype)


def key_shape(dtype: Any) -> tuple[int, ...]:
    """The shape of the uint32 words of one PRNG key."""
    return dtype._impl.key_shape


def replace_dtypes(eqn: jex_core.JaxprEqn, replace: Callable[[Any], Any]) -> jex_core.JaxprEqn:
    """An equation like `eqn` on other dtypes.

    Args:
      eqn: an equation.
      replace: the dtype to take in place of a dtype, which may be the same.
    """

    def replaced(atom):
        aval = atom.aval
        if not hasattr(aval, "dtype") or replace(aval.dtype) == aval.dtype:
            return atom
        return jex_core.Var(core.ShapedArray(aval.shape, replace(aval.dtype)))

    return eqn.replace(
        invars=[replaced(atom) for atom in eqn.invars],
        outvars=[replaced(var) for var in eqn.outvars],
    )


def key_impl(dtype: Any) -> Any:
    """The implementation of PRNG keys of a dtype: hashable, with the functions that it is."""
    return dtype._impl


def threefry_partitionable(eqn: jex_core.JaxprEqn) -> bool:
    """The value of `jax_threefry_partitionable` under which an equation was traced."""
    return eqn.ctx.threefry_partitionable


def random_seed(seeds: Any, *, impl: Any, partitionable: bool) -> Any:
    """The words of the keys for seeds; `random_*` are on words, in JAX, for use in tracing."""
    return _on_words(prng.random_seed_impl_base, partitionable, seeds, impl=impl)


def random_split(words: Any, *, impl: Any, shape: tuple[Dim, ...], partitionable: bool) -> Any:
    """The words of `shape` keys made from each key."""
    ndim = words.ndim - len(impl.key_shape)
    return _on_words(prng.random_split_impl_base, partitionable, impl, words, ndim, shape=shape)


def random_fold_in(words: Any, data: Any, *, impl: Any, partitionable: bool) -> Any:
    """The words of the keys made from each key and an integer."""
    shape = words.shape[: words.ndim - len(impl.key_shape)]
    return _on_words(prng.random_fold_in_impl_base, partitionable, impl, words, data, shape)


def random_bits(
    words: Any, *, impl: Any, bit_width: int, shape: tuple[Dim, ...], partitionable: bool
) -> Any:
    """Arrays of random bits of `shape` for each key."""
    ndim = words.ndim - len(impl.key_shape)
    sizes = {"bit_width": bit_width, "shape": shape}
    return _on_words(prng.random_bits_impl_base, partitionable, impl, words, ndim, **sizes)


def random_gamma(words: Any, alpha: Any, *, impl: Any, log_space: bool, partitionable: bool) -> Any:
    """Samples of the gamma distribution with shapes `alpha`, as many for each key as it has."""
    key = jax.random.wrap_key_data(words, impl=impl)
    sample = jex_core.primitives.random_gamma_p.impl
    return _on_words(sample, partitionable, key, alpha, log_space=log_space, use_vmap=True)


def _on_words(fun: Callable[..., Any], partitionable: bool, *args: Any, **kwargs: Any) -> Any:
    with jax_config.threefry_partitionable(partitionable):
        return fun(*args, **kwargs)
