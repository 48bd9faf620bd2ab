"""Entries that are made of JAX functions and their arguments."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering.avals import is_key
from lowering.boundary import models
from lowering.convert import convert
from lowering.export import arguments, calls, descriptions, modules, samples, signatures
from lowering.export.entry import Entry, Reference, of_flat
from lowering.export.jitted import jitted
from lowering.export.parameters import Parameters, parameters
from lowering.frontend import closures, functions, naming, polymorphic
from lowering.ops import constants
from lowering.ops.dtypes import to_tf_argument
from lowering.targets import Target

# Options that are of one function, which several have by name.
_OF_EACH = ("polymorphic_shapes", "polymorphic_constraints", "input_names", "output_names")


def entries(
    fun: Callable[..., Any] | Mapping[str, Callable[..., Any]],
    args: Sequence[Any] | Mapping[str, Sequence[Any]],
    target: Target,
    **options: Any,
) -> dict[str, Entry]:
    """The entries of an export, by name.

    Args:
      fun: a function, or several by the names of their signatures.
      args: its arguments as for `entry`, or those of each function by name.
      target: who will run the model.
      **options: as for `entry`. All functions have the same `params`, which the model keeps once.
        Each of the other options may be a mapping, with that of each function by name. In addition
        `with_gradient` says whether TensorFlow can differentiate the functions.

    Raises:
      TypeError: if there are several functions, but not the arguments of each.
    """
    fun, params = modules.taken_apart(fun, options.pop("params", None))
    kept = parameters(params, target)
    if not isinstance(fun, Mapping):
        return {descriptions.DEFAULT: _entry(fun, args, target, kept, **options)}
    if not fun:
        raise TypeError("expected a JAX function, or several by name, not {}")
    for name in fun:
        signatures.check_name(name)
    if not isinstance(args, Mapping) or set(args) != set(fun):
        raise TypeError(
            f"args has to be a mapping with the arguments of each function: {sorted(fun)}"
        )
    made = {}
    for name, f in fun.items():
        own: dict[str, Any] = {
            key: value.get(name) if key in _OF_EACH and isinstance(value, Mapping) else value
            for key, value in options.items()
        }
        if not isinstance(options.get("polymorphic_constraints"), Mapping):
            # One list for all functions speaks of those that have symbolic dimensions.
            is_symbolic = polymorphic.of_structs(tuple(args[name]))[1] is not None
            if not is_symbolic and own.get("polymorphic_shapes") is None:
                own["polymorphic_constraints"] = None
        made[name] = _entry(f, args[name], target, kept, **own)
    return made


def entry(
    fun: Callable[..., Any],
    args: Any,
    target: Target,
    *,
    params: Any = None,
    polymorphic_shapes: Sequence[Any] | None = None,
    polymorphic_constraints: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Entry:
    """An entry for a function.

    Args:
      fun: a JAX function of `params`, if there are any, and of `args`; or a module of nnx or
        Equinox, whose parameters the model keeps.
      args: its positional arguments: pytrees of arrays or of `jax.ShapeDtypeStruct`. Those of PRNG
        keys are key data to the model: uint32 with one more dimension.
      target: who will run the model.
      params: a pytree of arrays that the model keeps.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of `fun`
        and of the keys of the pytrees.
      output_names: the names of the leaves of the result.

    Raises:
      TypeError: for arguments that are no tuple or list, or leaves without shape and dtype.
      ValueError: if the number of names is not that of the leaves, or they are no names.
    """
    fun, params = modules.taken_apart(fun, params)
    return _entry(
        fun,
        args,
        target,
        parameters(params, target),
        polymorphic_shapes=polymorphic_shapes,
        polymorphic_constraints=polymorphic_constraints,
        input_names=input_names,
        output_names=output_names,
    )


def _entry(
    fun: Callable[..., Any],
    args: Any,
    target: Target,
    kept: Parameters,
    *,
    polymorphic_shapes: Sequence[Any] | None = None,
    polymorphic_constraints: Sequence[str] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    with_gradient: bool = False,
) -> Entry:
    """Implements `entry`, for parameters that entries may share, and with gradients on demand."""
    functions.check(fun, "a JAX function, or several by name")
    if not isinstance(args, tuple | list):
        raise TypeError(
            f"args has to be a tuple or list of the positional arguments, not {type(args).__name__}"
        )
    args, own_shapes, own_constraints = polymorphic.of_structs(tuple(args))
    if own_shapes is None:
        polymorphic_shapes = polymorphic.texts(polymorphic_shapes, args)
    elif polymorphic_shapes is None:
        polymorphic_shapes = own_shapes
    else:
        raise ValueError("args have symbolic dimensions, so polymorphic_shapes has to be left out")
    first = kept.first_argument(kept.arrays)
    calls.check(fun, (*first, *args), has_params=bool(first))
    if polymorphic_shapes is not None and (
        not isinstance(polymorphic_shapes, tuple | list) or len(polymorphic_shapes) != len(args)
    ):
        raise TypeError(
            f"polymorphic_shapes has to be a sequence of {len(args)} specifications, one for each "
            f"of args, not {polymorphic_shapes!r}"
        )
    leaves, tree = jax.tree_util.tree_flatten(args)
    leaves = [
        jax.ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, jax.core.ShapedArray) else x
        for x in leaves
    ]
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(((*first, *args), {}))[0]]
    default = naming.of_arguments(fun, paths)[len(kept.arrays) :]
    for leaf, name in zip(leaves, default, strict=True):
        arguments.check_leaf("args", leaf, fun, name)
    if isinstance(polymorphic_constraints, str):
        raise ValueError(
            f"polymorphic_constraints is a sequence of strings, not {polymorphic_constraints!r}"
        )
    constraints = (*own_constraints, *(polymorphic_constraints or ()))
    symbolic, scope = samples.symbolic_shapes(leaves, tree, polymorphic_shapes, constraints)
    of_fun = [
        leaf.dtype if is_key(leaf.dtype) else jax.dtypes.canonicalize_dtype(leaf.dtype)
        for leaf in leaves
    ]
    if any(map(is_key, of_fun)):
        symbolic = list(map(models.key_data_shape, symbolic, of_fun))
        leaves = list(map(models.key_data, leaves))
        if polymorphic_shapes is not None:
            texts = list(map(polymorphic.specification, symbolic))
            polymorphic_shapes = jax.tree_util.tree_unflatten(tree, texts)
    specs = [None] * len(first) + list(polymorphic_shapes or [None] * len(args))
    dtypes = [
        models.of_argument(jax.dtypes.canonicalize_dtype(leaf.dtype), target) for leaf in leaves
    ]
    of_leaves = [*kept.dtypes, *of_fun]
    fun_on_storage = models.on_storage(fun, of_leaves, target)
    # JAX differentiates conversions, but nothing is differentiated in the files of runtimes.
    stored = len(kept.dtypes) if target.is_consumer else 0
    converted = convert(
        models.on_storage(fun, of_leaves, target, stored) if stored else fun_on_storage,
        target=target,
        with_gradient=with_gradient,
        check_shapes=False,
        polymorphic_shapes=specs if polymorphic_shapes is not None else None,
        polymorphic_constraints=constraints,
    )
    names = arguments.named("input_names", input_names, default)
    outputs: list[str] = []

    def call(*tensors: Any) -> list[Any]:
        given = jax.tree_util.tree_unflatten(tree, tensors)
        with constants.read_from(kept.closed_over):
            found = converted(*kept.first_argument(kept.variables), *given)
        results, out_tree = jax.tree_util.tree_flatten(found)
        outputs[:] = arguments.named(
            "output_names", output_names, naming.of_results(out_tree), names
        )
        return results

    def inputs(given: Any) -> list[np.ndarray]:
        found, found_tree = jax.tree_util.tree_flatten(tuple(given))
        if str(found_tree) != str(tree):
            raise TypeError(f"expected inputs like args, of the structure {tree}; found {given!r}")
        arrays = list(map(np.asarray, map(models.key_data, found)))
        for name, x, dtype in zip(names, arrays, dtypes, strict=True):
            if not _is_converted(x.dtype, dtype):
                raise ValueError(f"an array for the input {name!r} is {x.dtype}, not {dtype}")
        return [x.astype(dtype) for x, dtype in zip(arrays, dtypes, strict=True)]

    reference = Reference(
        jitted(closures.on_plain_containers(fun_on_storage)),
        lambda arrays: (*first, *jax.tree_util.tree_unflatten(tree, arrays)),
        lambda found: list(map(np.asarray, jax.tree_util.tree_leaves(found))),
        len(kept.arrays),
    )
    is_given = not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)

    def draw(seed: int) -> Any:
        return jax.tree_util.tree_unflatten(tree, samples.of(leaves, symbolic, dtypes, scope, seed))

    made = of_flat(
        call,
        [
            tf.TensorSpec(
                [d if isinstance(d, int) else None for d in shape], to_tf_argument(dtype), name
            )
            for shape, dtype, name in zip(symbolic, dtypes, names, strict=True)
        ],
        reference,
        samples.of(leaves, symbolic, dtypes, scope),
        outputs,
        for_consumer=target.is_consumer,
        is_given=is_given,
        inputs=inputs,
    )

    def sizes() -> dict[str, list[int | str]]:
        given = list(map(jax.ShapeDtypeStruct, symbolic, dtypes))
        results = jax.eval_shape(fun_on_storage, *first, *jax.tree_util.tree_unflatten(tree, given))
        arrays = [*given, *jax.tree_util.tree_leaves(results)]
        of_arrays = [arguments.sizes(x, target.is_consumer) for x in arrays]
        return dict(zip([*names, *made.outputs], of_arrays, strict=True))

    return dataclasses.replace(
        made, draw=None if is_given else draw, leaves_nan=target.is_natural, sizes=sizes
    )


def _is_converted(given: np.dtype, dtype: Any) -> bool:
    """Whether converting arrays to a dtype loses digits at most, as from float64 to float32."""
    kinds = (np.bool_, np.integer, np.floating, np.complexfloating)
    rank, least = (
        next((i for i, kind in enumerate(kinds) if jax.dtypes.issubdtype(x, kind)), len(kinds))
        for x in (dtype, given)
    )
    # Zeros and ones are booleans, too.
    return least < len(kinds) and (least <= rank or least == kinds.index(np.integer))
