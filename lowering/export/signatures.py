"""Functions that are lowered already, as the signatures of a model."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.util import nest

from lowering.export.descriptions import DEFAULT

# The names of nodes of a graph: letters, digits and underscores.
NAME = re.compile(r"[A-Za-z0-9]\w*", re.ASCII)


def signatures(functions: Any) -> dict[str, Any]:
    """Concrete functions by the names of their signatures.

    Args:
      functions: a concrete function of TensorFlow, or several by name.

    Raises:
      TypeError: for anything else.
    """
    by_name = dict(functions) if isinstance(functions, Mapping) else {DEFAULT: functions}
    if not by_name:
        raise TypeError("expected a concrete function of TensorFlow, or several by name; found {}")
    for name, function in by_name.items():
        check_name(name)
        if not isinstance(function, tf.types.experimental.ConcreteFunction):
            raise TypeError(
                "expected a concrete function of TensorFlow, as "
                "tf.function(f).get_concrete_function(...) returns it; "
                f"found {type(function).__name__}"
            )
    return by_name


def check_name(name: Any) -> None:
    """Raises a TypeError for what is no name of a signature."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"the name of a signature is a string of letters, not {name!r}")


def single(functions: Any, model: str) -> Any:
    """The only function of a model that can have no more.

    Args:
      functions: a function, or several by name.
      model: what is written, as in "an ONNX model".

    Raises:
      ValueError: if there are several.
    """
    if not isinstance(functions, Mapping):
        return functions
    message = (
        f"{model} has one function, not several by name: export each of "
        f"{', '.join(map(str, functions))} to a file of its own"
    )
    if "decode" in functions:
        message += (
            "; or make one function that both reads prompts and writes, by "
            "export.decode_any_length in place of export.prefill_decode"
        )
    raise ValueError(message)


def described(model: str, name: str) -> str:
    """How a message names a signature of a model."""
    return model if name == DEFAULT else f"{name!r} of {model}"


def inputs(concrete: Any) -> list[tf.Tensor]:
    """The placeholders of the arguments of a concrete function, without what it captures."""
    return concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]


def output_names(concrete: Any) -> list[str]:
    """The names of the results of a concrete function, in the order of `tf.nest.flatten`.

    Those in a dictionary have its keys, results of deeper pytrees their paths, and others numbers.
    """
    structure = concrete.structured_outputs
    paths = nest.flatten_with_joined_string_paths(structure, separator="_")
    is_named = isinstance(structure, Mapping)
    names = [path if is_named else f"output_{path or 0}" for path, x in paths if x is not None]
    # Parts of paths may have underscores, too.
    return unique(names)


def named(concrete: Any, results: Iterable[Any]) -> dict[str, Any]:
    """The results of a concrete function by name, in the order of what it returns.

    Args:
      concrete: the concrete function.
      results: in the order of `tf.nest.flatten`, which sorts the keys of dictionaries.
    """
    names = output_names(concrete)
    by_name = dict(zip(names, results, strict=True))
    structure, left = concrete.structured_outputs, iter(names)
    leaves = [None if x is None else next(left) for x in tf.nest.flatten(structure)]
    return {name: by_name[name] for name in _leaves(tf.nest.pack_sequence_as(structure, leaves))}


def _leaves(structure: Any) -> Iterator[str]:
    """The names in a structure, with the keys of dictionaries in their own order."""
    if isinstance(structure, Mapping | list | tuple):
        for part in structure.values() if isinstance(structure, Mapping) else structure:
            yield from _leaves(part)
    else:
        yield from filter(None, tf.nest.flatten(structure))


def unique(names: Sequence[str]) -> list[str]:
    """Names that differ in more than their case, as TensorFlow asks for.

    A number is appended to those that would be the same.
    """
    taken: set[str] = set()
    # Whatever is unique keeps its name.
    reserved = {name.lower() for name in names}
    result = []
    for name in names:
        new, number = name, 0
        while new.lower() in taken or (number and new.lower() in reserved):
            number += 1
            new = f"{name}_{number}"
        taken.add(new.lower())
        result.append(new)
    return result


def flat(concrete: Any) -> Any:
    """A concrete function whose result is a dictionary of tensors.

    TensorFlow saves no other pytrees in signatures.
    """
    structure = concrete.structured_outputs
    if isinstance(structure, dict) and all(isinstance(x, tf.Tensor) for x in structure.values()):
        return concrete
    placeholders = inputs(concrete)

    def call(*tensors: Any) -> dict[str, tf.Tensor]:
        return named(concrete, results(concrete, tensors))

    specs = [tf.TensorSpec(x.shape, x.dtype, x.op.name) for x in placeholders]
    return tf.function(call, autograph=False).get_concrete_function(*specs)


def results(concrete: Any, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The results of a concrete function for tensors in the order of its placeholders."""
    args, kwargs = concrete.structured_input_signature
    # A default value may be of a type that cannot be given.
    while args and not _has_tensor(args[-1]):
        args = args[:-1]
    kwargs = {name: value for name, value in kwargs.items() if _has_tensor(value)}
    given = iter(tensors)
    args, kwargs = tf.nest.map_structure(
        lambda x: next(given) if isinstance(x, tf.TensorSpec) else x, (args, kwargs)
    )
    return [x for x in tf.nest.flatten(concrete(*args, **kwargs)) if x is not None]


def _has_tensor(structure: Any) -> bool:
    return any(isinstance(x, tf.TensorSpec) for x in tf.nest.flatten(structure))


def merged(functions: Mapping[str, Any]) -> Any:
    """One function of the arguments of all, with the results of all.

    Inputs and outputs have the name of their signature in front: `name/input`. What several
    functions capture, it captures once.

    Raises:
      ValueError: for a name that no node of a graph can have.
    """
    if unique(list(functions)) != list(functions) or not all(map(NAME.fullmatch, functions)):
        raise ValueError(
            "expected names of letters, digits and underscores, which differ in more than their "
            f"case, for the functions; found {list(functions)}"
        )
    placeholders = {name: inputs(concrete) for name, concrete in functions.items()}

    def call(*tensors: Any) -> dict[str, tf.Tensor]:
        given = iter(tensors)
        found = {}
        for name, concrete in functions.items():
            own = [next(given) for _ in placeholders[name]]
            of_function = named(concrete, results(concrete, own))
            found.update({f"{name}/{output}": x for output, x in of_function.items()})
        return found

    specs = [
        tf.TensorSpec(x.shape, x.dtype, f"{name}/{x.op.name}")
        for name, of_function in placeholders.items()
        for x in of_function
    ]
    return tf.function(call, autograph=False).get_concrete_function(*specs)
