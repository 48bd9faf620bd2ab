"""Export to a SavedModel."""

import contextlib
import itertools
import keyword
import logging
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export import (
    descriptions,
    limits,
    origins,
    output_order,
    paths,
    reach,
    reports,
    signatures,
)
from lowering.export.arguments import check_flags
from lowering.export.entries import entries
from lowering.export.entry import Entry
from lowering.export.paths import new_path
from lowering.export.reports import Report
from lowering.export.verification import check_tolerance
from lowering.export.verification import verify as compare
from lowering.frontend import gradient
from lowering.targets import Target, resolve

_log = logging.getLogger("lowering.export")

# The ops of callbacks, and of functions of TensorFlow that call Python.
_CALLS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})


def to_saved_model(
    fun: Any,
    args: Any,
    path: str | os.PathLike[str],
    *,
    params: Any = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    target: str | Target = "xla",
    gradients: bool = False,
    verify: bool = True,
    tolerance: float | None = None,
    overwrite: bool = False,
) -> Report:
    """Writes a SavedModel that TensorFlow and TensorFlow Serving load without JAX.

    Returns a report on it, which prints as a table.

    Args:
      fun: a JAX function, or several by the names of their signatures.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees; for several
        functions those of each by name.
      path: the directory, which is new or empty unless `overwrite` is True.
      params: a pytree of arrays that the model keeps; it is the first argument of each function.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: constraints on symbolic dimensions, as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of the
        function and of the keys of the pytrees.
      output_names: the names of the leaves of the result.
        Of several functions, these four may be mappings, with those of each by name.
      target: who will run the model, as for `convert`.
      gradients: whether the functions of the loaded model can be differentiated. Their derivatives
        are those of JAX, custom ones included.
      verify: whether to load the model and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output.
      overwrite: whether a model at `path` is replaced, once the new one is verified.

    Raises:
      ValueError: for an input with the name of a keyword of Python, such as "in".
      FileExistsError: if there is something at `path`.
      UnsupportedError: for a primitive that the target cannot express.
      LoweringError: with `gradients`, if JAX cannot differentiate a function.
      VerificationError: if the model does not compute what JAX computes.
    """
    check_tolerance(tolerance)
    check_flags(gradients=gradients, verify=verify, overwrite=overwrite)
    with reports.making(paths.checked(path), "saved_model", overwrite) as making:
        _log.info("lowering")
        made = entries(
            fun,
            args,
            resolve(True, target),
            params=params,
            polymorphic_shapes=polymorphic_shapes,
            polymorphic_constraints=polymorphic_constraints,
            input_names=input_names,
            output_names=output_names,
            with_gradient=gradients,
        )
        written = str(making.path)
        required = gradient.required() if gradients else contextlib.nullcontext()
        with origins.located(made.values()), required:
            save({name: entry.concrete for name, entry in made.items()}, written, gradients)
        if verify:
            _log.info("running the SavedModel in TensorFlow")
            for name, entry in made.items():
                described = signatures.described("the SavedModel", name)
                function = "" if name == descriptions.DEFAULT else name
                for sampled in reach.sampled(described, entry):
                    results = run(written, name, sampled)
                    making.note(compare(described, sampled, results, tolerance), function)
        return making.report()


def write(functions: Any, path: str | os.PathLike[str]) -> None:
    """Writes functions that are lowered already as a SavedModel; their variables stay variables.

    Inputs have the names of the functions' arguments, and outputs the keys of a dictionary that a
    function returns, or `output_0` and so on.

    Args:
      functions: a concrete function of TensorFlow, or several by the names of their signatures.
      path: the directory, which is new or empty.

    Raises:
      TypeError: for what is no concrete function.
      ValueError: for an input with the name of a keyword of Python, such as "in".
      FileExistsError: if there is something at `path`.
    """
    made = signatures.signatures(functions)
    with new_path(path) as written:
        save(made, str(written))


def save(made: Mapping[str, Any], path: str, gradients: bool = False) -> None:
    """Writes concrete functions as the signatures of a SavedModel, with gradients or without."""
    limits.check_constants("a SavedModel", made.values())
    for concrete in made.values():
        _check_calls(concrete)
        _check_names(concrete)
    module = tf.Module()
    flat = {name: signatures.flat(concrete) for name, concrete in made.items()}
    module.variables_of_signatures = [list(concrete.variables) for concrete in made.values()]
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=gradients)
    try:
        tf.saved_model.save(module, path, flat, options)
    except tf.errors.OpError as error:  # No op runs but those that write variables to files.
        raise paths.error_of_file(error, path) from error
    outputs = {name: list(concrete.structured_outputs) for name, concrete in flat.items()}
    output_order.write(pathlib.Path(path), outputs)


def refusals(entry: Entry) -> list[str]:
    """Why a SavedModel cannot hold an entry, as the message of the error; empty if it can."""
    try:
        with origins.located([entry]):
            _check_calls(entry.concrete)
    except UnsupportedError as error:
        return [str(error)]
    return []


def _check_calls(concrete: Any) -> None:
    """Refuses what calls Python, which a process that loads the model cannot."""
    of_graph = (op.type for op in concrete.graph.get_operations())
    bodies = concrete.graph._functions.values()
    of_bodies = (node.op for body in bodies for node in body.cached_definition.node_def)
    found = _CALLS.intersection(itertools.chain(of_graph, of_bodies))
    if found:
        raise UnsupportedError(
            f"a SavedModel cannot hold {min(found)}, which calls Python in the process that made "
            "it. Leave the callback out of what is exported"
        )


def _check_names(concrete: Any) -> None:
    """Refuses names of inputs that no parameter of a function of Python can have.

    TensorFlow makes parameters of them, beside one that is called `self`.
    """
    for name in (x.op.name for x in signatures.inputs(concrete)):
        if keyword.iskeyword(name) or name == "self":
            raise ValueError(
                f"an input of a SavedModel or a TF Lite model cannot be called {name!r}, as "
                "TensorFlow makes a parameter of Python of it. Give it another name by "
                f"input_names, such as {name}_"
            )


def run(path: str, name: str, entry: Entry) -> dict[str, Any]:
    """The results of a signature of a saved model for the samples of its entry."""
    model = tf.saved_model.load(path)
    signature = model.signatures[name]
    named = zip(entry.specs, entry.samples, strict=True)
    results = signature(**{spec.name: tf.constant(x) for spec, x in named})
    return {output: results[output].numpy() for output in entry.outputs}
