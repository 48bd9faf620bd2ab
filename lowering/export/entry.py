"""Entries: functions of flat, named tensors, made of JAX functions, that can be exported."""

import collections
import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.convert import convert
from lowering.errors import UnsupportedError
from lowering.formats import boundary, pairs
from lowering.frontend import naming
from lowering.targets import Target

_OPERATIONS: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}

# The value of each dimension variable in the inputs that an export is verified with.
_SIZE = 3


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function that is exported under a name.

    Attributes:
      function: a TensorFlow function of the inputs, which returns its results by name.
      specs: the inputs; their names are those of the exported model.
      reference: the JAX function of the same inputs, which returns a list of arrays.
      samples: inputs to verify the export with.
      variables: what the exported model keeps of the parameters.
      dtypes: for a consumer, the dtypes of the outputs of the JAX function, once it is traced.
        Complex outputs are pairs of real numbers there, in a last dimension, and bfloat16 is
        float32.
      outputs: the names of the results in their order, once the function has been traced.
    """

    function: Any
    specs: Sequence[tf.TensorSpec]
    reference: Callable[..., list[np.ndarray]]
    samples: Sequence[np.ndarray]
    variables: Sequence[tf.Variable]
    outputs: list[str]
    dtypes: dict[str, np.dtype] = dataclasses.field(default_factory=dict)

    @functools.cached_property
    def concrete(self) -> Any:
        """The traced function."""
        return self.function.get_concrete_function(*self.specs)

    def without_empty(self) -> "Entry":
        """The entry without inputs and outputs that have no elements, which LiteRT does not take.

        Raises:
          UnsupportedError: if no output is left.
        """
        results = self.concrete.structured_outputs
        outputs = [name for name in self.outputs if 0 not in results[name].shape]
        kept = [0 not in spec.shape for spec in self.specs]
        if not outputs:
            raise UnsupportedError("no result has an element, so that there is nothing to compute")
        if all(kept) and len(outputs) == len(self.outputs):
            return self

        def run(*given: Any) -> dict[str, tf.Tensor]:
            rest = iter(given)
            tensors = [
                next(rest) if is_kept else tf.zeros(spec.shape, spec.dtype)
                for spec, is_kept in zip(self.specs, kept, strict=True)
            ]
            found = self.function(*tensors)
            return {name: found[name] for name in outputs}

        def kept_of(items: Sequence[Any]) -> list[Any]:
            return [item for item, is_kept in zip(items, kept, strict=True) if is_kept]

        def reference(*arrays: np.ndarray) -> list[np.ndarray]:
            rest = iter(arrays)
            full = [
                next(rest) if is_kept else sample
                for sample, is_kept in zip(self.samples, kept, strict=True)
            ]
            named = zip(self.outputs, self.reference(*full), strict=True)
            return [x for name, x in named if name in outputs]

        return dataclasses.replace(
            self,
            function=tf.function(run, autograph=False),
            specs=kept_of(self.specs),
            reference=reference,
            samples=kept_of(self.samples),
            outputs=outputs,
        )


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
      **options: as for `entry`.

    Raises:
      TypeError: if there are several functions, but not the arguments of each.
    """
    if not isinstance(fun, Mapping):
        return {"serving_default": entry(fun, args, target, **options)}
    if not isinstance(args, Mapping) or set(args) != set(fun):
        raise TypeError(
            f"args has to be a mapping with the arguments of each function: {sorted(fun)}"
        )
    return {name: entry(f, args[name], target, **options) for name, f in fun.items()}


def entry(
    fun: Callable[..., Any],
    args: Any,
    target: Target,
    *,
    params: Any = None,
    polymorphic_shapes: Sequence[Any] | None = None,
    polymorphic_constraints: Sequence[str] = (),
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Entry:
    """An entry for a function.

    Args:
      fun: a JAX function of `params`, if there are any, and of `args`.
      args: its positional arguments: pytrees of arrays or of `jax.ShapeDtypeStruct`.
      target: who will run the model.
      params: a pytree of arrays that the model keeps.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of `fun`
        and of the keys of the pytrees.
      output_names: the names of the leaves of the result.

    Raises:
      TypeError: for arguments that are no tuple or list, or leaves without shape and dtype.
      ValueError: if the number of names is not that of the leaves.
    """
    if not isinstance(args, tuple | list):
        raise TypeError(
            f"args has to be a tuple or list of the positional arguments, not {type(args).__name__}"
        )
    args = tuple(args)
    leaves, tree = jax.tree_util.tree_flatten(args)
    for leaf in leaves:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise TypeError(
                "args takes arrays and jax.ShapeDtypeStruct, such as "
                f"jax.ShapeDtypeStruct((1, 3), 'float32'), not {leaf!r}"
            )
    kept, kept_tree = jax.tree_util.tree_flatten(params)
    first = () if params is None else (params,)
    symbolic = _symbolic(leaves, tree, polymorphic_shapes, polymorphic_constraints)
    specs = [None] * len(first) + list(polymorphic_shapes or [None] * len(args))
    converted = convert(
        fun,
        target=target,
        with_gradient=False,
        check_shapes=False,
        polymorphic_shapes=specs if polymorphic_shapes is not None else None,
        polymorphic_constraints=polymorphic_constraints,
    )
    variables = [tf.Variable(np.asarray(x), trainable=False) for x in kept]
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(((*first, *args), {}))[0]]
    default = naming.of_arguments(fun, paths)[len(kept) :]
    names = _named("input_names", input_names, default)
    outputs: list[str] = []
    dtypes = [jax.dtypes.canonicalize_dtype(leaf.dtype) for leaf in leaves]

    def call(*tensors: Any) -> list[Any]:
        given = jax.tree_util.tree_unflatten(tree, tensors)
        if params is not None:
            given = (jax.tree_util.tree_unflatten(kept_tree, variables), *given)
        results, out_tree = jax.tree_util.tree_flatten(converted(*given))
        outputs[:] = _named("output_names", output_names, naming.of_results(out_tree))
        return results

    def reference(*arrays: np.ndarray) -> list[np.ndarray]:
        given = (*first, *jax.tree_util.tree_unflatten(tree, arrays))
        return list(map(np.asarray, jax.tree_util.tree_leaves(jax.jit(fun)(*given))))

    return _of_flat(
        call,
        [
            tf.TensorSpec([d if isinstance(d, int) else None for d in shape], dtype, name)
            for shape, dtype, name in zip(symbolic, dtypes, names, strict=True)
        ],
        reference,
        [
            _sample(i, leaf, shape, dtype)
            for i, (leaf, shape, dtype) in enumerate(zip(leaves, symbolic, dtypes, strict=True))
        ],
        variables,
        outputs,
        for_consumer=bool(target.holds),
    )


def flat_entry(
    fun: Callable[..., Any], samples: Sequence[np.ndarray], for_consumer: bool = False
) -> Entry:
    """An entry for a TensorFlow function of arrays, whose inputs and outputs are numbered.

    Args:
      fun: a function of tensors; its results may be in pytrees.
      samples: arrays of the shapes and dtypes of its arguments.
      for_consumer: whether inputs and outputs are in dtypes that consumers have.
    """
    outputs: list[str] = []

    def call(*tensors: Any) -> list[Any]:
        results = tf.nest.flatten(fun(*tensors))
        outputs[:] = [f"y{i:03}" for i in range(len(results))]
        return results

    def reference(*arrays: np.ndarray) -> list[np.ndarray]:
        return [x.numpy() for x in tf.nest.flatten(fun(*map(tf.constant, arrays)))]

    specs = [tf.TensorSpec(x.shape, x.dtype, f"x{i:03}") for i, x in enumerate(samples)]
    return _of_flat(call, specs, reference, samples, [], outputs, for_consumer)


def _of_flat(call, specs, reference, samples, variables, outputs, for_consumer):
    """An entry for a function of tensors that returns a list, and names its results in `outputs`.

    If it is `for_consumer`, inputs and outputs are in dtypes that consumers have: complex numbers
    are pairs of real ones, and bfloat16 is float32.
    """
    dtypes: dict[str, np.dtype] = {}
    if not for_consumer:

        def named(*tensors: Any) -> dict[str, tf.Tensor]:
            found = call(*tensors)
            return dict(zip(outputs, found, strict=True))

        function = tf.function(named, autograph=False)
        return Entry(function, specs, reference, samples, variables, outputs)

    of_function = [spec.dtype for spec in specs]

    def run(*tensors: Any) -> dict[str, tf.Tensor]:
        found = call(*map(_from_consumer, tensors, of_function))
        results = dict(zip(outputs, found, strict=True))
        dtypes.update({name: np.dtype(x.dtype.as_numpy_dtype) for name, x in results.items()})
        return {name: _to_consumer(x) for name, x in results.items()}

    def reference_of_consumer(*arrays: np.ndarray) -> list[np.ndarray]:
        given = [
            restored(x, np.dtype(dtype.as_numpy_dtype))
            for x, dtype in zip(arrays, of_function, strict=True)
        ]
        return list(map(_held, reference(*given)))

    return Entry(
        tf.function(run, autograph=False),
        list(map(_held_spec, specs)),
        reference_of_consumer,
        list(map(_held, samples)),
        variables,
        outputs,
        dtypes,
    )


def _held_spec(spec: tf.TensorSpec) -> tf.TensorSpec:
    """An input of a consumer: complex numbers are pairs, and bfloat16 is float32."""
    shape = [*spec.shape, 2] if spec.dtype.is_complex else spec.shape
    is_held = spec.dtype.is_complex or spec.dtype == tf.bfloat16
    return tf.TensorSpec(shape, tf.float32, spec.name) if is_held else spec


def _held(x: np.ndarray) -> np.ndarray:
    """An array as a consumer takes it; see `_held_spec`."""
    if np.iscomplexobj(x):
        return np.stack([x.real, x.imag], -1).astype(np.float32)
    return x.astype(np.float32) if x.dtype == tf.bfloat16.as_numpy_dtype else x


def _from_consumer(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """An input of a consumer as the function takes it."""
    return tf.complex(x[..., 0], x[..., 1]) if dtype.is_complex else tf.cast(x, dtype)


def _to_consumer(x: tf.Tensor) -> tf.Tensor:
    """A result of the function as a consumer returns it."""
    if x.dtype.is_complex:
        return pairs.split(x)
    if x.dtype != tf.bfloat16:
        return x
    before = boundary.before_cast(x)
    return tf.cast(x, tf.float32) if before is None else before


def restored(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array of a dtype from what a consumer has in its place; see `Entry.dtypes`."""
    if dtype.kind == "c":
        return np.ascontiguousarray(x, np.float32).view(np.complex64)[..., 0]
    return x.astype(dtype)


def _symbolic(leaves, tree, polymorphic_shapes, constraints):
    """The shape of each leaf, whose dimensions may be symbolic."""
    if polymorphic_shapes is None:
        return [tuple(map(int, leaf.shape)) for leaf in leaves]
    structs = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    args = jax.tree_util.tree_unflatten(tree, structs)
    scope = jax.export.SymbolicScope(tuple(constraints))
    made = jax.export.symbolic_args_specs(args, list(polymorphic_shapes), scope=scope)
    return [tuple(leaf.shape) for leaf in jax.tree_util.tree_leaves(made)]


def _named(what: str, given: Sequence[str] | None, default: Sequence[str]) -> list[str]:
    """The names of inputs or outputs, each of them once."""
    if given is not None:
        if len(given) != len(default):
            raise ValueError(
                f"{what} has {len(given)} names for {len(default)} arrays: {', '.join(default)}"
            )
        return list(given)
    names = [re.sub(r"\W+", "_", name).strip("_") or "x" for name in default]
    counts = collections.Counter[str]()
    result = []
    for name in names:
        counts[name] += 1
        result.append(name if counts[name] == 1 else f"{name}_{counts[name] - 1}")
    return result


def _sample(number, leaf, shape, dtype):
    """An input to verify an export with: the argument itself, or random numbers like it."""
    if not isinstance(leaf, jax.ShapeDtypeStruct) and all(isinstance(d, int) for d in shape):
        return np.asarray(leaf).astype(dtype)
    rng = np.random.default_rng(number)
    sizes = [d if isinstance(d, int) else _evaluated(d) for d in shape]
    if np.dtype(dtype).kind == "b":
        return rng.random(sizes) < 0.5
    if np.dtype(dtype).kind in "iu":
        # Small numbers, as integers are mostly indices.
        return rng.integers(0, 4, sizes).astype(dtype)
    values = rng.uniform(-1, 1, sizes)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.uniform(-1, 1, sizes)
    return values.astype(dtype)


def _evaluated(dim):
    """The size of a symbolic dimension whose variables are all `_SIZE`."""
    variables = dict.fromkeys(jax_compat.dim_variables(dim), _SIZE)
    return int(jax_compat.evaluate_dim(dim, variables, _OPERATIONS))
