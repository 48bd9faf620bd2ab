"""Exported models as functions of NumPy arrays."""

import functools
import json
import os
import pathlib
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lowering.export import bundles, onnx_session
from lowering.export.descriptions import DECODE, DEFAULT, Array, Signature
from lowering.export.inspection import checked_path, format_of, inspect
from lowering.export.packages import import_package
from lowering.export.readers import ONLY

# What runs a model: its results by name, for inputs by name.
Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]


class LoadedModel:
    """A function of an exported model, which its runtime computes.

    It is called with arrays in the order of `inputs`, or by name:

        model = export.load("model.tflite")
        y = model(x)
        y = model(x=x)

    PRNG keys are given as they are, or as their key data.
    A model with one output returns an array, others a dictionary with the names of the outputs.
    Complex inputs and outputs are as the file has them, with a last dimension for their two parts
    where its format has no complex numbers.

    Attributes:
      name: the name of the function in the model.
      inputs: name, dtype and shape of each input.
      outputs: those of each output.
      signatures: all functions of the model by name, each of which can be called.
    """

    def __init__(self, name: str, signature: Signature, run: Run) -> None:
        self.name = name
        self._run = run
        self.inputs: Sequence[Array] = signature.inputs
        self.outputs: Sequence[Array] = signature.outputs
        self.signatures: Mapping[str, LoadedModel] = {name: self}

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """The outputs for the given inputs.

        Raises:
          TypeError: if inputs are missing, unknown, or of a dtype that would lose its values.
          ValueError: if an input has another shape than the model.
        """
        results = self.run(checked_inputs(self.inputs, args, named))
        return next(iter(results.values())) if len(results) == 1 else results

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by name, for inputs as `checked_inputs` returns them."""
        results = self._run(inputs)
        return {array.name: np.asarray(results[array.name]) for array in self.outputs}

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, x)) for x in (self.inputs, self.outputs))
        return f"{self.name}({inputs}) -> {outputs}"


def load(path: str | os.PathLike[str], signature: str | None = None) -> LoadedModel:
    """A function of an exported model, which takes and returns NumPy arrays.

    LiteRT, onnxruntime, TF.js in Node or TensorFlow computes it. Loading a SavedModel runs what its
    author wrote into it, so load only what you trust.

    Args:
      path: a SavedModel, TF Lite, ONNX, TF.js or LiteRT-LM model. Of the latter the signatures
        can be called; LiteRT-LM itself writes texts.
      signature: the function; by default the only one, or `serving_default`, or `decode` of a
        language model, or the first.

    Raises:
      FileNotFoundError: if there is nothing at `path`.
      ValueError: if it is no such model, or has no such signature.
      ImportError: if the runtime is missing; the message has the command that installs it.
    """
    path = checked_path(path)
    described = inspect(path)
    name = chosen(path, described.signatures, signature)
    runs = _RUNS[format_of(path)](path)
    made = {
        each: LoadedModel(each, found, functools.partial(runs, each))
        for each, found in described.signatures.items()
    }
    made[name].signatures = made
    return made[name]


def checked_inputs(
    inputs: Sequence[Array], args: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The inputs of a function of a model by name, in the dtypes that it has.

    Args:
      inputs: the inputs that it has.
      args: arrays in their order.
      named: arrays by their names.

    Raises:
      TypeError: if inputs are missing, unknown, or of a dtype that would lose its values.
      ValueError: if an input has another shape than the model.
    """
    known = [array.name for array in inputs]
    if len(args) > len(known) or (len(args) < len(known) and args and not named):
        found = f"{len(args)} array{'s' if len(args) != 1 else ''}"
        raise TypeError(f"the inputs are {', '.join(known)}; found {found}")
    given = dict(zip(known, args, strict=False))
    for name in named:
        if name in given:
            raise TypeError(f"the input {name!r} is given twice")
    given.update(named)
    if set(given) != set(known):
        raise TypeError(f"the inputs are {', '.join(known)}; found {', '.join(given) or 'none'}")
    return {array.name: _as_input(array, given[array.name]) for array in inputs}


def chosen(path: pathlib.Path, signatures: Mapping[str, Signature], name: str | None) -> str:
    """The name of the function of a model that is loaded: the one asked for, or that by default.

    Raises:
      ValueError: if the model has no such function, or none at all.
    """
    if not signatures:
        raise ValueError(f"{path} has no signatures, so nothing of it can be called")
    if name is None:
        first = next(iter(signatures))
        return next((known for known in (DEFAULT, DECODE) if known in signatures), first)
    if name not in signatures:
        raise ValueError(f"{path} has no signature {name!r}; it has {', '.join(signatures)}")
    return name


def _as_input(array: Array, given: Any) -> np.ndarray:
    """An array of the dtype of an input, if that keeps its kind and its integers."""
    x = np.asarray(_without_keys(given))
    dtype = _numpy_dtype(array.dtype)
    if x.dtype != dtype:
        # Numbers of Python have a kind, and no dtype.
        is_typed = hasattr(given, "dtype")
        if not _is_of_kind(x.dtype, dtype) and (is_typed or not _fits(x, dtype)):
            raise TypeError(f"the input {array.name!r} is {array.dtype}, not {x.dtype}")
        with np.errstate(over="ignore"):
            converted = x.astype(dtype)
        if x.dtype.kind in "iu" and _kind(dtype) in "biu" and not np.array_equal(converted, x):
            raise TypeError(f"the input {array.name!r} is {array.dtype}, which has not all of {x}")
        x = converted
    if len(x.shape) != len(array.shape) or any(
        isinstance(size, int) and size != found
        for size, found in zip(array.shape, x.shape, strict=True)
    ):
        raise ValueError(f"the input {array} cannot have the shape {x.shape}")
    return x


def _without_keys(given: Any) -> Any:
    """The key data of PRNG keys, which models take in their place; anything else itself."""
    jax = sys.modules.get("jax")  # It takes long to import, and there are no keys without it.
    if jax is None or not isinstance(given, jax.Array):
        return given
    is_key = jax.dtypes.issubdtype(given.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(given) if is_key else given


def _is_of_kind(given: np.dtype, dtype: np.dtype) -> bool:
    """Whether a dtype has the kind of numbers of another, or one with more of them.

    NumPy says so of its own dtypes, but lets anything become one of `ml_dtypes`.
    """
    kinds = "buifc"
    return 0 <= kinds.find(_kind(given)) <= kinds.find(_kind(dtype))


def _fits(x: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers of Python are of a kind that a dtype has."""
    kinds = {"b": "biu", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}
    return x.dtype.kind in kinds.get(_kind(dtype), "")


def _kind(dtype: np.dtype) -> str:
    """The kind of a dtype, of NumPy or of `ml_dtypes`."""
    if dtype.kind != "V":
        return dtype.kind
    return "f" if "float" in dtype.name else dtype.name[0]


def _numpy_dtype(name: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, None) or name)


def _saved_model(path: pathlib.Path) -> Callable[..., Mapping[str, np.ndarray]]:
    import tensorflow as tf

    model = tf.saved_model.load(str(path if path.is_dir() else path.parent))

    def run(signature: str, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        found = model.signatures[signature](**{name: tf.constant(x) for name, x in given.items()})
        return {name: x.numpy() for name, x in found.items()}

    return run


def _tflite(path: pathlib.Path) -> Callable[..., Mapping[str, np.ndarray]]:
    litert = import_package("ai_edge_litert.interpreter", "tflite")
    return _interpreted(litert.Interpreter(model_path=str(path)))


def _litertlm(path: pathlib.Path) -> Callable[..., Mapping[str, np.ndarray]]:
    litert = import_package("ai_edge_litert.interpreter", "tflite")
    return _interpreted(litert.Interpreter(model_content=bundles.model_of(path)))


def _interpreted(interpreter: Any) -> Callable[..., Mapping[str, np.ndarray]]:
    def run(signature: str, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        if interpreter.get_signature_list():
            return interpreter.get_signature_runner(signature)(**given)
        inputs = {x["name"]: x["index"] for x in interpreter.get_input_details()}
        for name, x in given.items():
            interpreter.resize_tensor_input(inputs[name], x.shape)
        interpreter.allocate_tensors()
        for name, x in given.items():
            interpreter.set_tensor(inputs[name], x)
        interpreter.invoke()
        details = interpreter.get_output_details()
        return {x["name"]: interpreter.get_tensor(x["index"]) for x in details}

    return run


def _onnx(path: pathlib.Path) -> Callable[..., Mapping[str, np.ndarray]]:
    opened = onnx_session.session(path)
    names = [x.name for x in opened.get_outputs()]

    def run(_: str, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return dict(zip(names, opened.run(names, dict(given)), strict=True))

    return run


def _tfjs(path: pathlib.Path) -> Callable[..., Mapping[str, np.ndarray]]:
    from lowering.export.tfjs import node

    node.check_installed()
    folder = path if path.is_dir() else path.parent
    outputs = json.loads((folder / "model.json").read_text())["signature"]["outputs"]

    process = node.Node()

    def run(signature: str, given: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        prefix = "" if signature == ONLY else f"{signature}/"
        names = [name for name in outputs if name.startswith(prefix)]
        found = process.run(folder, {prefix + name: x for name, x in given.items()}, names)
        # TF.js has the bits of uint32 in int32.
        return {
            name.removeprefix(prefix): x.view(np.uint32)
            if outputs[name]["dtype"] == "DT_UINT32"
            else x
            for name, x in found.items()
        }

    weakref.finalize(run, process.close)
    return run


_RUNS: Mapping[str, Callable[[pathlib.Path], Callable[..., Mapping[str, np.ndarray]]]] = {
    "saved_model": _saved_model,
    "tflite": _tflite,
    "onnx": _onnx,
    "tfjs": _tfjs,
    "litertlm": _litertlm,
}
