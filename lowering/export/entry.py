"""Entries: functions of flat, named tensors, made of JAX functions, that can be exported."""

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import callables
from lowering.avals import is_key, real_dtype
from lowering.convert import convert
from lowering.errors import UnsupportedError
from lowering.export import held, modules, samples, signatures
from lowering.formats import boundary
from lowering.frontend import closures, exchange, naming, polymorphic, refused
from lowering.targets import Target

# Options that are of one function, which several have by name.
_OF_EACH = ("polymorphic_shapes", "polymorphic_constraints", "input_names", "output_names")

# The highest rank of what kernels take apart.
_UNSTACKED_RANK = 5


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What an exported model keeps; all its functions share it.

    Attributes:
      tree: the pytree of the arrays, or None if there are no parameters.
      dtypes: the dtypes of its leaves.
      arrays: its leaves, as the model keeps them.
      variables: a variable for each.
    """

    tree: Any
    dtypes: Sequence[np.dtype]
    arrays: Sequence[np.ndarray]
    variables: Sequence[tf.Variable]

    def first_argument(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of a function that come before those of a caller."""
        return () if self.tree is None else (jax.tree_util.tree_unflatten(self.tree, leaves),)


def parameters(params: Any, target: Target) -> Parameters:
    """The parameters of a model that a target runs; None if it has none.

    Raises:
      TypeError: for leaves that are no arrays of numbers.
    """
    if params is None:
        return Parameters(None, (), (), ())
    leaves, tree = jax.tree_util.tree_flatten(params)
    for leaf in leaves:
        if not np.isscalar(leaf) or isinstance(leaf, str | bytes):
            _check_leaf("params", leaf)
        if isinstance(leaf, jax.ShapeDtypeStruct):
            raise TypeError(f"params takes arrays, not {leaf!r}, which has no values")
    given = [_as_jax_has_it(leaf) for leaf in leaves]
    arrays = list(map(np.asarray, given))
    dtypes = [
        leaf.dtype if not np.isscalar(leaf) and is_key(leaf.dtype) else x.dtype
        for leaf, x in zip(leaves, arrays, strict=True)
    ]
    kept = [x.astype(held.of_parameter(x.dtype, target), copy=False) for x in arrays]
    variables = []
    for x, array, leaf in zip(kept, arrays, given, strict=True):
        is_shared = x is array and isinstance(leaf, jax.Array) and _is_on_cpu(leaf)
        value = exchange.to_tensor(leaf) if is_shared else x
        variables.append(tf.Variable(value, trainable=False))
    return Parameters(tree, dtypes, kept, variables)


def _as_jax_has_it(leaf: Any) -> Any:
    """A leaf in the dtype that JAX gives it, without a copy if it is that already."""
    if isinstance(leaf, np.ndarray) and jax.dtypes.canonicalize_dtype(leaf.dtype) == leaf.dtype:
        return leaf
    return held.words(jax.numpy.asarray(leaf))


def _is_on_cpu(array: jax.Array) -> bool:
    return {device.platform for device in array.devices()} == {"cpu"}


@dataclasses.dataclass(frozen=True)
class Reference:
    """What an entry computes, in JAX.

    Attributes:
      fun: the function.
      arguments: the arguments of `fun`, of the inputs of the entry.
      results: the outputs of the entry, of what `fun` returns.
      weights: how many of the leaves of its arguments, the first ones, are parameters.
    """

    fun: Callable[..., Any]
    arguments: Callable[[Sequence[np.ndarray]], tuple[Any, ...]]
    results: Callable[[Any], list[np.ndarray]]
    weights: int = 0

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        return self.results(self.fun(*self.arguments(inputs)))


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function that is exported under a name.

    Attributes:
      function: a TensorFlow function of the inputs, which returns its results by name.
      specs: the inputs; their names are those of the exported model.
      reference: the JAX function of the same inputs, which returns a list of arrays.
      samples: inputs to verify the export with.
      is_given: whether the samples are the caller's, rather than random numbers.
      inputs: the inputs, of a tuple of positional arguments.
      draw: makes other random arguments of a seed; None if the caller has given some.
      dtypes: for runtimes other than TensorFlow, the dtypes of the outputs of the JAX function,
        once it is traced. Complex outputs have a last dimension for their two parts there, and
        bfloat16 is float32.
      leaves_nan: whether the numerics of the target leave open what ops make of NaN.
      sizes: the shapes of inputs and outputs by name, with expressions such as "2*b" for symbolic
        sizes.
      outputs: the names of the results in their order, once the function has been traced.
    """

    function: Any
    specs: Sequence[tf.TensorSpec]
    reference: Reference
    samples: Sequence[np.ndarray]
    outputs: list[str]
    is_given: bool = False
    inputs: Callable[[Sequence[Any]], list[np.ndarray]] = list
    draw: Callable[[int], Any] | None = None
    dtypes: dict[str, np.dtype] = dataclasses.field(default_factory=dict)
    leaves_nan: bool = False
    sizes: Callable[[], dict[str, list[int | str]]] = dict

    @functools.cached_property
    def concrete(self) -> Any:
        """The traced function."""
        return self.function.get_concrete_function(*self.specs)

    def with_samples(self, samples: Sequence[np.ndarray]) -> "Entry":
        """The entry with other inputs to verify the export with."""
        return dataclasses.replace(self, samples=samples)

    def without_empty(self) -> "Entry":
        """The entry without inputs and outputs that have no elements.

        LiteRT does not take these; see `tflite.quirks.empty_inputs`.

        Raises:
          UnsupportedError: if no output is left.
        """
        results = self.concrete.structured_outputs
        outputs = [name for name in self.outputs if 0 not in results[name].shape]
        kept = [0 not in spec.shape for spec in self.specs]
        if not outputs:
            raise UnsupportedError("all results are empty arrays, so there is nothing to compute")
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

        def arguments(arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
            rest = iter(arrays)
            full = [
                next(rest) if is_kept else sample
                for sample, is_kept in zip(self.samples, kept, strict=True)
            ]
            return self.reference.arguments(full)

        def of_results(found: Any) -> list[np.ndarray]:
            named = zip(self.outputs, self.reference.results(found), strict=True)
            return [x for name, x in named if name in outputs]

        return dataclasses.replace(
            self,
            function=tf.function(run, autograph=False),
            specs=kept_of(self.specs),
            reference=dataclasses.replace(self.reference, arguments=arguments, results=of_results),
            samples=kept_of(self.samples),
            outputs=outputs,
            inputs=lambda given: kept_of(self.inputs(given)),
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
      **options: as for `entry`. All functions have the same `params`, which the model keeps once.
        Each of the other options may be a mapping, with that of each function by name. In addition
        `with_gradient` says whether TensorFlow can differentiate the functions.

    Raises:
      TypeError: if there are several functions, but not the arguments of each.
    """
    fun, params = modules.taken_apart(fun, options.pop("params", None))
    kept = parameters(params, target)
    if not isinstance(fun, Mapping):
        return {signatures.DEFAULT: _entry(fun, args, target, kept, **options)}
    if not fun:
        raise TypeError("expected a function, or several by name; found {}")
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
        keys are uint32 to the model, with a last dimension for the words of a key.
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
    """As `entry`, for parameters that other entries may share, and with gradients on demand."""
    if not callable(fun):
        raise TypeError(f"expected a function, or several by name; found {type(fun).__name__}")
    if not isinstance(args, tuple | list):
        raise TypeError(
            f"args has to be a tuple or list of the positional arguments, not {type(args).__name__}"
        )
    args = tuple(args)
    polymorphic_shapes = polymorphic.texts(polymorphic_shapes, args)
    first = kept.first_argument(kept.arrays)
    _check_call(fun, (*first, *args), has_params=bool(first))
    if isinstance(polymorphic_shapes, str) or (
        polymorphic_shapes is not None and len(polymorphic_shapes) != len(args)
    ):
        raise TypeError(
            f"polymorphic_shapes has to be a sequence of {len(args)} specifications, one for each "
            f"of args, not {polymorphic_shapes!r}"
        )
    leaves, tree = jax.tree_util.tree_flatten(args)
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(((*first, *args), {}))[0]]
    default = naming.of_arguments(fun, paths)[len(kept.arrays) :]
    for leaf, name in zip(leaves, default, strict=True):
        _check_leaf("args", leaf, fun, name)
    constraints = tuple(polymorphic_constraints or ())
    symbolic, scope = samples.symbolic_shapes(leaves, tree, polymorphic_shapes, constraints)
    of_fun = [
        leaf.dtype if is_key(leaf.dtype) else jax.dtypes.canonicalize_dtype(leaf.dtype)
        for leaf in leaves
    ]
    if any(map(is_key, of_fun)):
        symbolic = list(map(held.words_shape, symbolic, of_fun))
        leaves = list(map(held.words, leaves))
        if polymorphic_shapes is not None:
            texts = [f"({', '.join(map(str, shape))},)" if shape else "()" for shape in symbolic]
            polymorphic_shapes = jax.tree_util.tree_unflatten(tree, texts)
    specs = [None] * len(first) + list(polymorphic_shapes or [None] * len(args))
    dtypes = [
        held.of_argument(jax.dtypes.canonicalize_dtype(leaf.dtype), target) for leaf in leaves
    ]
    fun_held = held.on_held(fun, [*kept.dtypes, *of_fun], target)
    converted = convert(
        fun_held,
        target=target,
        with_gradient=with_gradient,
        check_shapes=False,
        polymorphic_shapes=specs if polymorphic_shapes is not None else None,
        polymorphic_constraints=constraints,
    )
    names = _named("input_names", input_names, default)
    outputs: list[str] = []

    def call(*tensors: Any) -> list[Any]:
        given = jax.tree_util.tree_unflatten(tree, tensors)
        results, out_tree = jax.tree_util.tree_flatten(
            converted(*kept.first_argument(kept.variables), *given)
        )
        outputs[:] = _named("output_names", output_names, naming.of_results(out_tree), names)
        return results

    def inputs(given: Any) -> list[np.ndarray]:
        found, found_tree = jax.tree_util.tree_flatten(tuple(given))
        if str(found_tree) != str(tree):
            raise TypeError(f"expected inputs like args, of the structure {tree}; found {given!r}")
        arrays = map(np.asarray, map(held.words, found))
        return [x.astype(dtype) for x, dtype in zip(arrays, dtypes, strict=True)]

    reference = Reference(
        jax.jit(closures.on_plain_containers(fun_held)),
        lambda arrays: (*first, *jax.tree_util.tree_unflatten(tree, arrays)),
        lambda found: list(map(np.asarray, jax.tree_util.tree_leaves(found))),
        len(kept.arrays),
    )
    is_given = not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves)

    def draw(seed: int) -> Any:
        return jax.tree_util.tree_unflatten(tree, samples.of(leaves, symbolic, dtypes, scope, seed))

    made = _of_flat(
        call,
        [
            tf.TensorSpec([d if isinstance(d, int) else None for d in shape], dtype, name)
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
        results = jax.eval_shape(fun_held, *first, *jax.tree_util.tree_unflatten(tree, given))
        arrays = [*given, *jax.tree_util.tree_leaves(results)]
        of_arrays = [_sizes(x, target.is_consumer) for x in arrays]
        return dict(zip([*names, *made.outputs], of_arrays, strict=True))

    return dataclasses.replace(
        made, draw=None if is_given else draw, leaves_nan=target.is_natural, sizes=sizes
    )


def _sizes(x: Any, for_consumer: bool) -> list[int | str]:
    """The shape of an input or output, with expressions for symbolic sizes."""
    sizes = [size if isinstance(size, int) else str(size) for size in x.shape]
    is_pair = for_consumer and jax.dtypes.issubdtype(x.dtype, jax.numpy.complexfloating)
    return [*sizes, 2] if is_pair else sizes


def _check_call(fun: Callable[..., Any], args: Sequence[Any], has_params: bool) -> None:
    """Raises a TypeError if a function does not take so many arguments."""
    signature = callables.signature(fun)
    if signature is None:
        return
    try:
        signature.bind(*args)
    except TypeError as error:
        found = f"{len(args)} arguments" + (", the first of them params" if has_params else "")
        raise TypeError(
            f"expected the arguments of {callables.name(fun)}{signature}; found {found}"
        ) from error


def _check_leaf(what: str, leaf: Any, fun: Any = None, name: str = "") -> None:
    """Raises a TypeError for a leaf that is no array of numbers.

    Args:
      what: the argument of the exporter that it is in.
      leaf: the leaf.
      fun: the function that the leaf is an argument of.
      name: the name of the leaf among the arguments of the function.
    """
    if refused.is_refused(leaf) or not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        taken = "arrays"
        if what == "args":
            taken = (
                "arrays and jax.ShapeDtypeStruct, such as jax.ShapeDtypeStruct((1, 3), 'float32')"
            )
        instead = refused.instead(leaf)
        if name and isinstance(leaf, bool | int | float | complex | str):
            parameter, _, keys = name.partition("/")
            fixed = f"{callables.expression(fun)}, {parameter}={'...' if keys else repr(leaf)}"
            instead = f"; to fix its value, export functools.partial({fixed})"
        raise TypeError(f"{what} takes {taken}, not {leaf!r}{instead}")
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended) and not is_key(leaf.dtype):
        raise TypeError(f"{what} has {leaf.dtype}, which no runtime but JAX knows")


def flat_entry(
    fun: Callable[..., Any], arrays: Sequence[np.ndarray], for_consumer: bool = False
) -> Entry:
    """An entry for a TensorFlow function of arrays, whose inputs and outputs are numbered.

    Args:
      fun: a function of tensors; its results may be in pytrees.
      arrays: arrays of the shapes and dtypes of its arguments.
      for_consumer: whether inputs and outputs are in dtypes that all runtimes have.
    """
    outputs: list[str] = []

    def call(*tensors: Any) -> list[Any]:
        results = tf.nest.flatten(fun(*tensors))
        outputs[:] = [f"y{i:03}" for i in range(len(results))]
        return results

    reference = Reference(
        fun,
        lambda arrays: tuple(map(tf.constant, arrays)),
        lambda found: [x.numpy() for x in tf.nest.flatten(found)],
    )
    arrays = list(map(np.asarray, arrays))  # NumPy's scalars are no arrays to runtimes.
    specs = [tf.TensorSpec(x.shape, x.dtype, f"x{i:03}") for i, x in enumerate(arrays)]
    return _of_flat(call, specs, reference, arrays, outputs, for_consumer)


def _of_flat(
    call: Callable[..., list[Any]],
    specs: Sequence[tf.TensorSpec],
    reference: Reference,
    arrays: Sequence[np.ndarray],
    outputs: list[str],
    for_consumer: bool,
    is_given: bool = True,
    inputs: Callable[[Sequence[Any]], list[np.ndarray]] = list,
) -> Entry:
    """An entry for a function of tensors that returns a list, and names its results in `outputs`.

    If it is `for_consumer`, inputs and outputs are in dtypes that runtimes have: complex numbers
    have a last dimension for their two parts, and bfloat16 is float32.
    """
    dtypes: dict[str, np.dtype] = {}
    if not for_consumer:

        def named(*tensors: Any) -> dict[str, tf.Tensor]:
            found = call(*tensors)
            return dict(zip(outputs, found, strict=True))

        function = tf.function(named, autograph=False)
        return Entry(function, specs, reference, arrays, outputs, is_given, inputs)

    of_function = [spec.dtype for spec in specs]

    def run(*tensors: Any) -> dict[str, tf.Tensor]:
        found = call(*map(_from_consumer, tensors, of_function))
        results = dict(zip(outputs, found, strict=True))
        dtypes.update({name: np.dtype(x.dtype.as_numpy_dtype) for name, x in results.items()})
        return {name: _to_consumer(x) for name, x in results.items()}

    def arguments(given: Sequence[np.ndarray]) -> tuple[Any, ...]:
        return reference.arguments(
            [
                restored(x, np.dtype(dtype.as_numpy_dtype))
                for x, dtype in zip(given, of_function, strict=True)
            ]
        )

    return Entry(
        tf.function(run, autograph=False),
        list(map(_held_spec, specs)),
        dataclasses.replace(
            reference,
            arguments=arguments,
            results=lambda found: list(map(_held, reference.results(found))),
        ),
        list(map(_held, arrays)),
        outputs,
        is_given,
        lambda given: list(map(_held, inputs(given))),
        dtypes=dtypes,
    )


def _held_spec(spec: tf.TensorSpec) -> tf.TensorSpec:
    """An input of a runtime: of the parts of complex numbers, float32 in place of bfloat16."""
    if spec.dtype.is_complex:
        return tf.TensorSpec([*spec.shape, 2], spec.dtype.real_dtype, spec.name)
    return tf.TensorSpec(spec.shape, tf.float32, spec.name) if spec.dtype == tf.bfloat16 else spec


def _held(x: np.ndarray) -> np.ndarray:
    """An array as a runtime takes it; see `_held_spec`."""
    if np.iscomplexobj(x):
        return np.stack([x.real, x.imag], -1)
    return x.astype(np.float32) if x.dtype == tf.bfloat16.as_numpy_dtype else x


def _from_consumer(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """An input of a runtime as the function takes it."""
    return tf.complex(*_unstacked(x)) if dtype.is_complex else tf.cast(x, dtype)


def _unstacked(x: tf.Tensor) -> list[tf.Tensor]:
    """The two elements of the last dimension; in kernels it is not beyond the fifth."""
    sizes = x.shape[:-1]
    if len(sizes) < _UNSTACKED_RANK or not sizes.is_fully_defined():
        return tf.unstack(x, 2, axis=-1)
    flat = tf.reshape(x, [sizes.num_elements(), 2])
    return [tf.reshape(part, sizes) for part in tf.unstack(flat, axis=-1)]


def _to_consumer(x: tf.Tensor) -> tf.Tensor:
    """A result of the function as a runtime returns it."""
    if x.dtype.is_complex:
        return tf.stack(boundary.split([x]), -1)
    if x.dtype != tf.bfloat16:
        return x
    before = boundary.before_cast(x)
    return tf.cast(x, tf.float32) if before is None else before


def restored(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array of a dtype from what a runtime has in its place; see `Entry.dtypes`."""
    if dtype.kind == "c":
        return np.ascontiguousarray(x, real_dtype(dtype)).view(dtype)[..., 0]
    return x.astype(dtype)


def _named(
    what: str, given: Sequence[str] | None, default: Sequence[str], taken: Sequence[str] = ()
) -> list[str]:
    """The names of inputs or outputs, each of them once; by default none of those `taken`.

    Raises:
      ValueError: if there are too many or too few, or some are no names, or are the same.
    """
    if given is None:
        names = [re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x" for name in default]
        return signatures.unique([*taken, *names])[len(taken) :]
    if isinstance(given, str):
        raise ValueError(f"{what} is a sequence of names, not the string {given!r}")
    if len(given) != len(default):
        raise ValueError(
            f"{what} has {len(given)} names for {len(default)} arrays: {', '.join(default)}"
        )
    for name in given:
        if not isinstance(name, str) or not signatures.NAME.fullmatch(name):
            raise ValueError(
                f"{what} has {name!r}; a name has letters, digits and underscores, and begins "
                "with none of the latter"
            )
    if signatures.unique(given) != list(given):
        raise ValueError(f"{what} has names that differ in nothing but their case: {list(given)}")
    return list(given)
