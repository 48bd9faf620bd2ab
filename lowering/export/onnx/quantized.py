"""Models whose weights, or all numbers, are integers; by onnxruntime's own quantizer.

It takes and writes files. Integers with and without signs are chosen so that sums of two products
do not overflow 16 bits, which processors without VNNI have for products of unlike integers.
"""

import contextlib
import logging
import pathlib
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from lowering.export.packages import import_package
from lowering.export.verification import refusals

# What `quantize` may be.
QUANTIZATIONS = ("dynamic", "int8", "int4")

# Of so many elements of a column of a matrix, weights of 4 bits have a scale.
_BLOCK = 32

# The first set of operators that has these.
_OPSET_OF_FOUR_BITS = 21

# The ops whose weights are quantized.
_DYNAMIC, _FOUR_BITS = ("Conv", "Gather", "MatMul"), ("MatMul",)

# Those that tell that something is quantized.
_OF_INTEGERS = {"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger"}

# What tells the quantizer that shapes have been inferred.
_PROCESSED = ("onnx.infer", "onnxruntime.quant")


def check_options(quantize: str | None, representative_data: Any, opset: int) -> None:
    """Raises a ValueError for options that do not go together."""
    if quantize not in (None, *QUANTIZATIONS):
        raise ValueError(f"quantize is one of {', '.join(QUANTIZATIONS)}, not {quantize!r}")
    if quantize == "int8" and representative_data is None:
        raise ValueError('quantize="int8" needs representative_data')
    if quantize != "int8" and representative_data is not None:
        raise ValueError('representative_data is for quantize="int8"')
    if quantize == "int4" and opset < _OPSET_OF_FOUR_BITS:
        raise ValueError(
            f'quantize="int4" needs opset {_OPSET_OF_FOUR_BITS} or later, not {opset}; older ones '
            "have no integers of 4 bits"
        )


def save(
    source: pathlib.Path,
    path: pathlib.Path,
    quantize: str,
    data: Iterable[Mapping[str, np.ndarray]] = (),
    external_data: bool = False,
) -> None:
    """Writes a quantized model.

    Args:
      source: the file of a model.
      path: the file to write.
      quantize: which numbers are quantized; see `to_onnx`.
      data: representative inputs by name, for "int8".
      external_data: whether weights are written to a file beside it.

    Raises:
      ImportError: if onnxruntime is missing.
      UnsupportedError: if its quantizer refuses the model.
      ValueError: if there is nothing in the model to quantize.
    """
    import_package("onnxruntime", "onnx")
    import onnx
    import onnx_ir as ir

    before = onnx.load(source)
    with _same_process(), refusals("onnxruntime's quantizer", "quantize the model"):
        if quantize == "dynamic":
            _dynamic(before, path, external_data)
        elif quantize == "int8":
            _static(before, path, data, external_data)
        else:
            _four_bits(before, path, external_data)
    written = onnx.load(path, load_external_data=False)
    _keep_first(written.graph, set())
    original = onnx.load(source, load_external_data=False)
    _say_the_same(written, original)
    ordered = ir.from_proto(written)
    ordered.graph.sort()
    path.write_bytes(ir.to_proto(ordered).SerializeToString())
    if not _has_integers(written.graph):
        from lowering.export.onnx import quantized_weights

        reason = quantized_weights.why_none(original, quantize)
        raise ValueError(f"quantize={quantize!r} finds nothing to quantize: {reason}")


@contextlib.contextmanager
def _same_process() -> Iterator[None]:
    """A context that undoes what the quantizer does to a process.

    It adds a folder to those in which Python looks for modules, and logs by functions that give the
    root logger a handler if it has none.
    """
    before = list(sys.path)
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        sys.path[:] = before


def _say_the_same(model: Any, original: Any) -> None:
    """Gives a model the metadata and the producer of another; the quantizer writes its own."""
    del model.metadata_props[:]
    model.metadata_props.extend(original.metadata_props)
    model.producer_name = original.producer_name
    model.producer_version = original.producer_version


def _dynamic(model: Any, path: pathlib.Path, external_data: bool) -> None:
    from lowering.export.onnx import quantized_weights as weights

    _with_products(model)
    weights.separate(model)
    weights.name_nodes(model)
    batched = weights.batched_products(model)
    if not batched:
        _write_dynamic(model, path, external_data)
        return
    import onnx

    # MatMulInteger takes scales of columns only for matrices.
    with tempfile.TemporaryDirectory() as folder:
        partly = pathlib.Path(folder) / "model.onnx"
        options = {"per_channel": False, "nodes_to_quantize": batched}
        _write_dynamic(model, partly, external_data, **options)
        model = onnx.load(partly)
    model.metadata_props.add(key=_PROCESSED[0], value=_PROCESSED[1])
    _write_dynamic(model, path, external_data, nodes_to_exclude=batched)


def _write_dynamic(model: Any, path: pathlib.Path, external_data: bool, **options: Any) -> None:
    from onnxruntime import quantization

    quantization.quantize_dynamic(
        model,
        path,
        op_types_to_quantize=_DYNAMIC,
        weight_type=quantization.QuantType.QUInt8,
        use_external_data_format=external_data,
        extra_options={"EnableSubgraph": True},
        **{"per_channel": True, **options},
    )


def _static(
    model: Any, path: pathlib.Path, data: Iterable[Mapping[str, np.ndarray]], external_data: bool
) -> None:
    from onnxruntime import quantization

    from lowering.export.onnx import quantized_weights as weights

    taken = {x.name for x in model.graph.input}
    fed = ({name: x for name, x in each.items() if name in taken} for each in data)

    class Reader(quantization.CalibrationDataReader):
        def get_next(self) -> Any:
            return next(fed, None)

    weights.separate(model)
    model.metadata_props.add(key=_PROCESSED[0], value=_PROCESSED[1])
    quantization.quantize_static(
        model,
        path,
        Reader(),
        per_channel=True,
        activation_type=quantization.QuantType.QInt8,
        weight_type=quantization.QuantType.QInt8,
        use_external_data_format=external_data,
    )


def _four_bits(model: Any, path: pathlib.Path, external_data: bool) -> None:
    from onnxruntime.quantization import matmul_nbits_quantizer
    from onnxruntime.quantization.quant_utils import QuantFormat

    from lowering.export.onnx import quantized_weights as weights

    _with_products(model)
    weights.move_inwards(model)
    weights.name_nodes(model)
    config = matmul_nbits_quantizer.DefaultWeightOnlyQuantConfig(
        block_size=_BLOCK, quant_format=QuantFormat.QDQ, op_types_to_quantize=_FOUR_BITS
    )
    quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
        model, nodes_to_exclude=weights.other_products(model), algo_config=config
    )
    quantizer.process()
    quantizer.model.save_model_to_file(str(path), external_data)


def _with_products(model: Any) -> None:
    """Makes products and sums of dense layers, which are what is quantized."""
    from onnxruntime.quantization.onnx_model import ONNXModel

    wrapped = ONNXModel(model)
    wrapped.replace_gemm_with_matmul()
    model.metadata_props.add(key=_PROCESSED[0], value=_PROCESSED[1])


def _keep_first(graph: Any, known: set[str]) -> None:
    """Leaves out what a graph, or one around it, has already.

    The quantizer makes weights of 4 bits anew for each product that reads them, under one name, and
    does not look at what graphs within a graph read when it puts nodes in order.
    """
    for field in (graph.initializer, graph.node):
        kept = []
        for each in field:
            names = each.output if field is graph.node else [each.name]
            if not known.intersection(names):
                kept.append(each)
                known.update(names)
        if len(kept) < len(field):
            kept = [type(each).FromString(each.SerializeToString()) for each in kept]
            del field[:]
            field.extend(kept)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _keep_first(attribute.g, set(known))


def _has_integers(graph: Any) -> bool:
    """Whether something of a graph has been quantized, or of those within it."""
    inner = (a.g for node in graph.node for a in node.attribute if a.HasField("g"))
    kinds = {node.op_type for node in graph.node}
    return bool(kinds & _OF_INTEGERS) or any(map(_has_integers, inner))
