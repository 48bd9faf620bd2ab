"""Export to ONNX."""

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.export import onnx_passes, reach, reports, signatures
from lowering.export.branches import give_shapes
from lowering.export.entry import Entry, entry
from lowering.export.frozen import (
    frozen,
    give_results_nodes,
    make_names_unique,
    unshare_functions,
)
from lowering.export.metadata import Metadata, in_onnx
from lowering.export.metadata import check as check_metadata
from lowering.export.narrow import advising_32_bits
from lowering.export.onnx_weights import store_weights
from lowering.export.origins import located
from lowering.export.packages import import_package
from lowering.export.paths import new_path
from lowering.export.reports import Model
from lowering.export.verification import refusals
from lowering.export.verification import verify as compare
from lowering.export.weights import dtypes_of
from lowering.targets import ONNX

# The versions of ONNX's set of operators that the graphs of the target are made for; the last, and
# the default, is the newest that tf2onnx 1.17 writes.
OPSETS = range(13, 19)
OPSET = OPSETS[-1]

_log = logging.getLogger("lowering.export")
_UNUSED = "unused"
_FLOAT = tf.float32.as_datatype_enum
# The numbers of dtypes in ONNX.
_FLOAT32, _INT32, _INT64, _BOOL, _FLOAT64 = 1, 6, 7, 9, 11
# Those that onnxruntime sorts.
_ORDERED = frozenset({_FLOAT32, _FLOAT64, _INT32, _INT64})

# The comparisons of ONNX.
_COMPARISONS = {
    "Less": "Less",
    "LessEqual": "LessOrEqual",
    "Greater": "Greater",
    "GreaterEqual": "GreaterOrEqual",
}


def to_onnx(
    fun: Any,
    args: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    params: Any = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    opset: int = OPSET,
    verify: bool = True,
    tolerance: float | None = None,
    overwrite: bool = False,
    metadata: Metadata | None = None,
) -> Model:
    """An ONNX model, made by tf2onnx: its bytes, with a report on it.

    It has one function; ONNX has no signatures. Where `jax_enable_x64` is set, it computes with 64
    bits as JAX does, as far as onnxruntime has the ops.

    Args:
      fun: a JAX function.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees.
      path: the file to write, if any.
      params: a pytree of arrays that the model keeps; it is the first argument of the function.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: constraints on symbolic dimensions, as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of the
        function and of the keys of the pytrees.
      output_names: the names of the leaves of the result.
      opset: the version of ONNX's set of operators, from 13 to 18.
      verify: whether to run the model in onnxruntime and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output.
      overwrite: whether a file at `path` is replaced.
      metadata: what the model says of itself.

    Raises:
      ValueError: for several functions, another opset, or an output that is called as an input.
      FileExistsError: if there is something at `path`.
      ImportError: if tf2onnx is missing, or the runtime that verifies the model.
      UnsupportedError: if the model needs an op that ONNX lacks.
      VerificationError: if the model does not compute what JAX computes.
    """
    signatures.single(fun, "an ONNX model")
    _check_opset(opset)
    check_metadata(metadata)
    import_package("tf2onnx", "onnx")
    if verify:
        import_package("onnxruntime", "onnx")
    with reports.making(path, overwrite) as making, advising_32_bits("onnxruntime"):
        _log.info("lowering for ONNX")
        made = entry(
            fun,
            args,
            ONNX,
            params=params,
            polymorphic_shapes=polymorphic_shapes,
            polymorphic_constraints=polymorphic_constraints,
            input_names=input_names,
            output_names=output_names,
        )
        concrete = made.concrete
        _log.info("converting by tf2onnx")
        with located([made]):
            model = converted(concrete, opset)
        if verify:
            _log.info("running the model in onnxruntime")
            for sampled in reach.sampled("the ONNX model", made):
                with located([made]):
                    results = run(model, sampled)
                making.note(compare("the ONNX model", sampled, results, tolerance))
        return making.model(in_onnx(metadata, model))


def write(function: Any, path: str | os.PathLike[str], *, opset: int = OPSET) -> None:
    """Writes a function that is lowered already as an ONNX model; its variables are frozen.

    Inputs have the names of the function's arguments, and outputs the keys of a dictionary that it
    returns, or `output_0` and so on.

    Args:
      function: a concrete function of TensorFlow.
      path: the file; it must not exist.
      opset: the version of ONNX's set of operators, from 13 to 18.

    Raises:
      TypeError: for what is no concrete function.
      ValueError: for several functions, another opset, or an output that is called as an input.
      FileExistsError: if there is something at `path`.
      ImportError: if tf2onnx is missing.
      UnsupportedError: if tf2onnx does not take the graph.
    """
    (concrete,) = signatures.signatures(signatures.single(function, "an ONNX model")).values()
    _check_opset(opset)
    with new_path(path) as written:
        written.write_bytes(converted(concrete, opset))


def _check_opset(opset: int) -> None:
    if opset not in OPSETS:
        raise ValueError(f"opset is one of {', '.join(map(str, OPSETS))}, not {opset!r}")


def converted(concrete: Any, opset: int) -> bytes:
    """The model of a concrete function."""
    import_package("tf2onnx", "onnx")
    graph = frozen(concrete)
    names = {x.name: name for name, x in (*graph.inputs.items(), *graph.outputs.items())}
    both = set(graph.inputs) & set(graph.outputs)
    if both:
        raise ValueError(
            "ONNX has one name for one array, but inputs and outputs are both called "
            f"{', '.join(sorted(both))}; give other output_names"
        )
    inputs = [x.name for x in graph.inputs.values()]
    if not inputs:
        # tf2onnx takes no graph without inputs.
        graph.graph_def.node.add(name=_UNUSED, op="Placeholder").attr["dtype"].type = _FLOAT
    with refusals("tf2onnx", "convert the graph"):
        proto = _by_tf2onnx(
            graph.graph_def,
            input_names=inputs or [f"{_UNUSED}:0"],
            output_names=[x.name for x in graph.outputs.values()],
            opset=opset,
            tensors_to_rename=names,
        )
    if not inputs:
        del proto.graph.input[:]
    store_weights(proto.graph, dtypes_of([concrete]))
    return proto.SerializeToString()


def _by_tf2onnx(
    graph_def: Any, input_names: Sequence[str], output_names: Sequence[str], **options: Any
) -> Any:
    """The model of a frozen graph: the steps of `tf2onnx.convert.from_graph_def`.

    That function copies the whole graph before each pass, in case the pass fails, and takes half of
    its time to do so. Here nothing is copied at first. If a pass fails, the conversion begins anew,
    with copies.
    """
    from tf2onnx import optimizer, tf_loader

    tfonnx, passes = onnx_passes.tfonnx(), onnx_passes.optimizers()

    with tf.device("/cpu:0"), tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        optimized = tf_loader.tf_optimize(input_names, output_names, graph_def)
    unshare_functions(optimized)
    make_names_unique(optimized)
    give_shapes(optimized)
    for function in optimized.library.function:
        give_results_nodes(function)

    def model(catch_errors):
        with tf.Graph().as_default() as tf_graph:
            tf.import_graph_def(optimized, name="")
            graph = tfonnx.process_tf_graph(
                tf_graph,
                continue_on_error=True,
                input_names=input_names,
                output_names=output_names,
                custom_op_handlers={op: (handler, []) for op, handler in _HANDLERS.items()},
                **options,
            )
            passed = optimizer.optimize_graph(graph, catch_errors, passes)
            return passed.make_model("converted by lowering")

    try:
        return model(catch_errors=False)
    except Exception:
        return model(catch_errors=True)


def _as_mod(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Makes a remainder the one of ONNX that has the sign of the dividend."""
    node.type = "Mod"
    node.set_attr("fmod", 1)


def _as_comparison(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Makes a comparison the same in ONNX; see `onnx.quirks.comparisons_in_float32`."""
    node.type = _COMPARISONS[node.type]


def _as_where(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Makes a selection a Where; see `onnx.quirks.selections_by_products`."""
    if ctx.get_dtype(node.output[0]) != _BOOL:
        node.type = "Where"
        return
    # `onnx.quirks.where_of_bools`.
    condition, x, y = node.input
    shape = ctx.get_shape(node.output[0])
    outputs = node.output
    ctx.remove_node(node.name)
    (negated,) = ctx.make_node("Not", [condition]).output
    (first,) = ctx.make_node("And", [condition, x]).output
    (second,) = ctx.make_node("And", [negated, y]).output
    ctx.make_node("Or", [first, second], outputs=outputs, name=name, dtypes=[_BOOL], shapes=[shape])


def _as_itself(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Leaves an op that ONNX has; see `onnx.quirks.logarithms_in_float32`."""


def _as_complement(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Makes the complement of integers the BitwiseNot of opset 18; before, -1 less the number."""
    if ctx.opset >= 18:
        node.type = "BitwiseNot"
        return
    from tf2onnx.utils import map_onnx_to_numpy_type

    node.type = "Sub"
    dtype = map_onnx_to_numpy_type(ctx.get_dtype(node.output[0]))
    ones = ctx.make_const(f"{name}__ones", np.array(-1).astype(dtype)).output[0]
    ctx.replace_inputs(node, [ones, *node.input])


def _as_top_k(ctx: Any, node: Any, name: str, args: Any) -> None:
    """Makes a TopK of the dtype of the op; see `onnx.quirks.top_k_in_float32`."""
    (x, count), outputs = node.input, node.output
    shapes, (dtype, index_dtype) = node.output_shapes, node.output_dtypes
    ctx.remove_node(name)
    ordered = dtype if dtype in _ORDERED else _FLOAT32
    if ordered != dtype:
        (x,) = ctx.make_node("Cast", [x], attr={"to": ordered}).output
    (count,) = ctx.make_node("Cast", [count], attr={"to": _INT64}).output
    one = ctx.make_const(f"{name}__shape_of_k", np.array([1], np.int64)).output[0]
    (count,) = ctx.make_node("Reshape", [count, one]).output
    have = [ordered, _INT64]
    found = ctx.make_node("TopK", [x, count], output_count=2, dtypes=have, shapes=shapes).output
    wanted = zip(found, have, outputs, (dtype, index_dtype), shapes, strict=True)
    for result, has, output, to, shape in wanted:
        kind, attr = ("Identity", {}) if has == to else ("Cast", {"to": to})
        ctx.make_node(kind, [result], attr=attr, outputs=[output], dtypes=[to], shapes=[shape])


# What takes the place of functions of tf2onnx that write an op.
_HANDLERS = {
    "Invert": _as_complement,
    "Log": _as_itself,
    "SelectV2": _as_where,
    "TopKV2": _as_top_k,
    "TruncateMod": _as_mod,
    **dict.fromkeys(_COMPARISONS, _as_comparison),
}


def run(model: bytes, made: Entry) -> dict[str, np.ndarray]:
    """The results of a model in onnxruntime, for the samples of its entry."""
    onnxruntime = import_package("onnxruntime", "onnx")
    inputs = {spec.name: x for spec, x in zip(made.specs, made.samples, strict=True)}
    with refusals("onnxruntime", "run the model"):
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        taken = {node.name for node in session.get_inputs()}
        given = {name: x for name, x in inputs.items() if name in taken}
        results = session.run(made.outputs, given)
    return dict(zip(made.outputs, results, strict=True))
