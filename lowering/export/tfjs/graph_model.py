"""The files of a TF.js graph model: the graph and its signature as JSON, weights beside it.

The format is what the loader of `@tensorflow/tfjs-converter` 4.22 reads; see `io/types.ts` and
`operations/operation_mapper.ts` there. A node is TensorFlow's `NodeDef` as JSON. The values of
constants are no part of the nodes; they are weights.
"""

import functools
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import config_pb2, meta_graph_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.grappler import tf_optimizer
from tensorflow.python.training import saver

from lowering.errors import UnsupportedError
from lowering.export import limits, side_effects, signatures
from lowering.export.frozen import (
    Frozen,
    frozen,
    give_results_nodes,
    make_names_unique,
    number_outputs,
)
from lowering.export.paths import new_path
from lowering.export.tfjs import fusion, shards
from lowering.export.tfjs import large as large_weights
from lowering.export.tfjs.large import Large
from lowering.export.weights import dtypes_of, in_fewer_bits
from lowering.ops.constants import take_computed
from lowering.targets import TFJS

# The values of `quantize`, and the number of steps between the least and the largest weight.
QUANTIZATIONS = {"uint8": 255, "uint16": 65535, "float16": 0}

# Weights that are integers are stored in fewer bits from this size on.
_LARGE_BYTES = 4096

# The size of a file of weights; browsers keep files of this size.
SHARD_BYTES = 4 * 1024 * 1024

# The dtype in which TF.js holds weights of another.
_STORAGE = {
    np.dtype(np.float64): np.float32,
    np.dtype(np.float16): np.float32,
    np.dtype(ml_dtypes.bfloat16): np.float32,
    np.dtype(np.int64): np.int32,
    np.dtype(np.int16): np.int32,
    np.dtype(np.int8): np.int32,
    np.dtype(np.uint8): np.int32,
    np.dtype(np.uint16): np.int32,
    np.dtype(np.uint32): np.int32,
}
_STORAGE_TYPES = {
    tf.as_dtype(dtype).as_datatype_enum: tf.as_dtype(storage).as_datatype_enum
    for dtype, storage in _STORAGE.items()
}
_DTYPES = ("float32", "int32", "bool", "complex64")

# The passes of TensorFlow's optimizer that leave ops that TF.js knows; see `fusion` in place of
# "remap". Two come before constants are folded, so that a weight is stored once: "dependency"
# removes the nodes that read it, each of which would become a constant, and "arithmetic" transposes
# it within products.
_PASSES = (
    "debug_stripper",
    "pruning",
    "dependency",
    "arithmetic",
    "constfold",
    "dependency",
)


def write(
    functions: Any,
    directory: str | os.PathLike[str],
    *,
    quantize: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Writes functions that are lowered already as a graph model; their variables are frozen.

    Inputs have the names of the functions' arguments, and outputs the keys of a dictionary that a
    function returns, or `output_0` and so on. TF.js has one signature a model; see `to_tfjs` for
    how that of several functions is called.

    Args:
      functions: a concrete function of TensorFlow, or several by name.
      directory: where the files are written; it is new or empty.
      quantize: the dtype in which large weights are stored, of `QUANTIZATIONS`.
      shard_bytes: the size of a file of weights, in bytes.

    Raises:
      TypeError: for what is no concrete function.
      ValueError: for an unknown quantization, or a size that is not positive.
      FileExistsError: if there is something in `directory`.
      UnsupportedError: for a weight of a dtype that TF.js lacks, or an op with a side effect, such
        as an assignment to a variable; the error names it. Assertions and prints are left out.
    """
    made = signatures.signatures(functions)
    check_options(quantize, shard_bytes)
    several = isinstance(functions, Mapping)
    concrete = signatures.merged(made) if several else functions
    with new_path(directory) as written:
        write_files(concrete, written, quantize=quantize, shard_bytes=shard_bytes)


def check_options(quantize: str | None, shard_bytes: int) -> None:
    """Raises a ValueError for options that make no sense."""
    if quantize not in (None, *QUANTIZATIONS):
        raise ValueError(f"quantize is one of {', '.join(QUANTIZATIONS)}, not {quantize!r}")
    if not isinstance(shard_bytes, int) or shard_bytes < 1:
        raise ValueError(f"shard_bytes is a positive number of bytes, not {shard_bytes!r}")


def write_files(
    concrete: Any,
    directory: pathlib.Path,
    *,
    quantize: str | None = None,
    shard_bytes: int = SHARD_BYTES,
) -> None:
    """Writes the files of one concrete function; arguments as for `write`."""
    side_effects.check(concrete, "a TF.js model")
    limits.check_weights("a graph that TF.js is given", [concrete])
    graph = frozen(concrete)
    graph_def = _optimized(graph)
    make_names_unique(graph_def)
    _check(graph_def)
    outside = [*graph.inputs.values(), *graph.outputs.values()]
    large = {
        **large_weights.of_variables(graph.variables),
        **large_weights.of_constants(graph_def),
    }
    large = large_weights.folded(graph_def, large, [x.op.name for x in outside])
    fusion.fuse(graph_def.node, [x.name for x in outside], large)
    _drop_order_of_lists(graph_def.node)
    for function in graph_def.library.function:
        _drop_order_of_lists(function.node_def)
        give_results_nodes(function)
        fusion.fuse(function.node_def, function.ret.values())
        number_outputs(function)
    directory.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = []
    of_program = dtypes_of([concrete])
    with shards.Writer(directory, shard_bytes) as writer:
        for name, weight, computed in _take_weights(graph_def, large):
            described, stored = _encoded(name, weight(), None if computed else quantize, of_program)
            entries.append(described)
            writer.write(stored)
    model = {
        "format": "graph-model",
        "generatedBy": tf.__version__,
        "convertedBy": "lowering",
        "signature": {
            "inputs": {name: _info(x) for name, x in graph.inputs.items()},
            "outputs": {name: _info(x) for name, x in graph.outputs.items()},
        },
        "modelTopology": _topology(graph_def),
        "weightsManifest": [{"paths": writer.paths, "weights": entries}],
    }
    (directory / "model.json").write_text(json.dumps(model))


def _topology(graph_def: Any) -> dict[str, Any]:
    """A graph as JSON data."""
    topology = _with_zero_sizes(json_format.MessageToDict(graph_def))
    for function in topology.get("library", {}).get("function", ()):
        # Protobuf leaves out empty fields, but the loader asks for these.
        function["signature"] = {"inputArg": [], "outputArg": [], **function["signature"]}
        function.setdefault("nodeDef", [])
    return topology


def _with_zero_sizes(message: Any) -> Any:
    """A message as JSON data, with the sizes of 0 that the conversion to JSON leaves out."""
    if isinstance(message, list):
        return [_with_zero_sizes(value) for value in message]
    if not isinstance(message, dict):
        return message
    return {
        key: [{"size": "0", **dim} for dim in value] if key == "dim" else _with_zero_sizes(value)
        for key, value in message.items()
    }


def _info(x: tf.Tensor) -> dict[str, Any]:
    dims = [{"size": str(-1 if dim is None else dim)} for dim in x.shape.as_list()]
    dtype = types_pb2.DataType.Name(x.dtype.as_datatype_enum)
    return {"name": x.name, "dtype": dtype, "tensorShape": {"dim": dims}}


def _optimized(graph: Frozen) -> Any:
    """The graph after TensorFlow's optimizer."""
    meta_graph: meta_graph_pb2.MetaGraphDef = saver.export_meta_graph(
        graph_def=graph.graph_def, graph=graph.graph
    )
    fetches = meta_graph_pb2.CollectionDef()
    kept = [*graph.inputs.values(), *graph.outputs.values()]
    fetches.node_list.value.extend(x.name for x in kept)
    meta_graph.collection_def["train_op"].CopyFrom(fetches)
    config = config_pb2.ConfigProto()
    rewriters = config.graph_options.rewrite_options
    rewriters.optimizers.extend(_PASSES)
    rewriters.min_graph_nodes = -1
    return tf_optimizer.OptimizeGraph(config, meta_graph)


def _drop_order_of_lists(nodes: Iterable[Any]) -> None:
    """Drops the control inputs of ops that take a list; TF.js would append them to the list.

    TensorFlow's optimizer adds them where it folds an operand. TF.js orders nodes by their data.
    """
    for node in nodes:
        definition = op_def_registry.get(node.op)
        if definition and any(x.number_attr or x.type_list_attr for x in definition.input_arg):
            node.input[:] = [x for x in node.input if not x.startswith("^")]


def _check(graph_def: Any) -> None:
    """Raises an UnsupportedError if a graph has an op that TF.js does not know."""
    known = TFJS.known_ops
    for nodes in (graph_def.node, *(f.node_def for f in graph_def.library.function)):
        for node in nodes:
            if node.op not in known:
                raise UnsupportedError(f"{node.name!r} is {node.op}, which TF.js lacks")


def _take_weights(
    graph_def: Any, large: Mapping[str, Large]
) -> Iterator[tuple[str, Callable[[], np.ndarray], bool]]:
    """Takes the values out of constants, and replaces dtypes that TF.js lacks.

    Yields names, functions that return values, and whether the constants hold no parameters of the
    user's; the values of large weights are outside already.
    """
    for nodes in (graph_def.node, *(f.node_def for f in graph_def.library.function)):
        for node in nodes:
            for attr in node.attr.values():
                if attr.type in _STORAGE_TYPES:
                    attr.type = _STORAGE_TYPES[attr.type]
            if node.op != "Const":
                continue
            if node.name in large:
                array = large[node.name].array
            else:
                array = functools.partial(np.asarray, tf.make_ndarray(node.attr["value"].tensor))
                del node.attr["value"]
            computed = take_computed(node)
            yield node.name, functools.partial(_weight, node.name, array), computed


def _weight(name: str, array: Callable[[], np.ndarray]) -> np.ndarray:
    return _stored(name, array())


def _stored(name: str, value: np.ndarray) -> np.ndarray:
    """A weight in a dtype of TF.js.

    Raises:
      UnsupportedError: if it does not fit.
    """
    stored = value.astype(_STORAGE.get(value.dtype, value.dtype), copy=False)
    if stored.dtype.name not in _DTYPES:
        raise UnsupportedError(f"the constant {name!r} is {value.dtype}, which TF.js lacks")
    is_uint32 = value.dtype == np.uint32
    if stored.dtype.kind == "i" and not is_uint32 and not np.array_equal(stored, value):
        raise UnsupportedError(
            f"the constant {name!r} has integers of more than 32 bits, which TF.js lacks"
        )
    return stored


def _encoded(
    name: str, value: np.ndarray, quantize: str | None, of_program: Iterable[np.dtype]
) -> tuple[dict[str, Any], np.ndarray]:
    """The entry of a weight in the manifest, and what is stored."""
    described: dict[str, Any] = {
        "name": name,
        "shape": list(value.shape),
        "dtype": value.dtype.name,
    }
    stored = in_fewer_bits(value, of_program)
    # A quantization is for floats: integers of the program stay what they are.
    is_integer = stored is not None and stored.dtype.kind in "iu"
    # Scalars and shapes are no weights that were trained.
    is_weight = value.dtype == np.float32 and value.ndim > 0 and value.size
    if value.dtype == np.int32 and value.nbytes >= _LARGE_BYTES:
        value, restored = _as_offsets(value, "int32")
        described.update(restored)
    elif stored is not None and is_integer:
        value, restored = _as_offsets(stored, "float32")
        described.update(restored)
    elif quantize is not None and is_weight:
        value, described["quantization"] = _quantized(value, quantize)
    elif stored is not None:
        value, described["quantization"] = _quantized(stored, "float16")
    return described, value


def _as_offsets(value: np.ndarray, original: str) -> tuple[np.ndarray, dict[str, Any]]:
    """Integers stored in 8 or 16 bits, as differences from the least of them, if these fit.

    Returns the stored array, and the part of its entry that says how to dequantize it.
    """
    low, high = int(value.min()), int(value.max())
    for dtype, steps in (("uint8", 255), ("uint16", 65535)):
        if high - low <= steps:
            stored = (value.astype(np.int64) - low).astype(dtype)
            by = {"dtype": dtype, "min": low, "scale": 1, "original_dtype": original}
            return stored, {"quantization": by}
    return value, {}


def _quantized(value: np.ndarray, dtype: str) -> tuple[np.ndarray, dict[str, Any]]:
    """A weight stored in fewer bits; TF.js dequantizes it as `stored * scale + min`."""
    if dtype == "float16":
        return value.astype(np.float16), {"dtype": dtype, "original_dtype": "float32"}
    steps = QUANTIZATIONS[dtype]
    low, high = float(value.min()), float(value.max())
    scale = (high - low) / steps or 1.0
    stored = np.clip(np.rint((value - low) / scale), 0, steps).astype(dtype)
    return stored, {"dtype": dtype, "min": low, "scale": scale, "original_dtype": "float32"}
