"""Models whose weights, or all numbers, are integers.

All numbers are made integers by onnxruntime's own quantizer, which takes files.
"""

import contextlib
import gc
import logging
import pathlib
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from lowering.export import memory
from lowering.export.onnx import saving
from lowering.export.packages import import_package
from lowering.export.verification import refusals

# The values of `quantize`.
QUANTIZATIONS = ("dynamic", "int8", "int4")

# The first set of operators that has these.
_OPSET_OF_FOUR_BITS = 21

# The metadata that tells the quantizer that shapes have been inferred.
_PROCESSED = ("onnx.infer", "onnxruntime.quant")


def check_options(quantize: str | None, representative_data: Any, opset: int) -> None:
    """Raises a ValueError for options that do not go together."""
    from lowering.export.onnx import opsets

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
    if quantize is not None and opset > (newest := opsets.newest("DequantizeLinear")):
        raise ValueError(
            f"quantize={quantize!r} takes an opset up to {newest}, not {opset}: the installed "
            "onnxruntime quantizes in none of the newer ones"
        )


def save(
    model: Any,
    path: pathlib.Path,
    quantize: str,
    data: Iterable[Mapping[str, np.ndarray]] = (),
    external_data: bool = False,
) -> None:
    """Writes a model, quantized.

    Args:
      model: the model, an `onnx_ir.Model`.
      path: the file to write.
      quantize: which numbers are quantized; see `to_onnx`.
      data: representative inputs by name, for "int8".
      external_data: whether weights are written to a file beside it.

    Raises:
      ImportError: if onnxruntime is missing.
      UnsupportedError: if its quantizer refuses the model.
      ValueError: if there is nothing in the model to quantize.
    """
    from lowering.export.onnx import integer_weights, unquantized

    reason = unquantized.why_none(model, quantize)
    if quantize == "int8":
        import_package("onnxruntime", "onnx")
        with tempfile.TemporaryDirectory() as folder:
            with _same_process(), refusals("onnxruntime's quantizer", "quantize the model"):
                model = _static(model, pathlib.Path(folder), data)
                gc.collect()  # The quantizer refers to itself, and so keeps the weights.
            found = _has_integers(model)
            if found:
                saving.save(model, path, external_data)
    else:
        found = integer_weights.quantize(model, quantize)
        if found:
            saving.save(model, path, external_data)
    if not found:
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


def _static(model: Any, folder: pathlib.Path, data: Iterable[Mapping[str, np.ndarray]]) -> Any:
    """A model of integers, by files in a folder.

    Weights are in a file of their own. The ranges of values are found first, so that there is no
    model in memory beside the one that runs.
    """
    import onnx
    import onnx_ir as ir
    from onnxruntime import quantization
    from onnxruntime.quantization import calibrate, quant_utils, registry

    from lowering.export.onnx import quantized_weights as weights

    taken = {x.name for x in model.graph.inputs}
    fed = ({name: x for name, x in each.items() if name in taken} for each in data)

    class Reader(quantization.CalibrationDataReader):
        def get_next(self) -> Any:
            return next(fed, None)

    source = folder / "model.onnx"
    saving.save(model, source, external_data=True)
    metadata = dict(model.metadata_props)
    producer = model.producer_name, model.producer_version
    del model
    separated = onnx.load(source, load_external_data=False)
    weights.separate(separated)
    separated.metadata_props.add(key=_PROCESSED[0], value=_PROCESSED[1])
    source.write_bytes(separated.SerializeToString())
    kinds = sorted({*registry.QLinearOpsRegistry, *registry.QDQRegistry})
    calibrater = calibrate.create_calibrator(
        source,
        kinds,
        augmented_model_path=str(folder / "augmented.onnx"),
        use_external_data_format=True,
        extra_options={},
    )
    calibrater.collect_data(Reader())
    ranges = calibrater.compute_data()
    del calibrater
    memory.give_back()
    quantizer = quantization.QDQQuantizer(
        quant_utils.load_model_with_shape_infer(source),
        per_channel=True,
        reduce_range=False,
        weight_qType=quantization.QuantType.QInt8,
        activation_qType=quantization.QuantType.QInt8,
        tensors_range=ranges,
        nodes_to_quantize=[],
        nodes_to_exclude=[],
        op_types_to_quantize=kinds,
        extra_options={},
    )
    made = ir.from_proto(quantizer.quantize_model())
    _separate_constants(made.graph)
    made.graph.sort()
    # The quantizer writes its own.
    made.metadata_props.clear()
    made.metadata_props.update(metadata)
    made.producer_name, made.producer_version = producer
    return made


def _separate_constants(graph: Any) -> None:
    """Gives each node that reads a constant of integers its own.

    Where onnxruntime sums precisely (see `onnx_session`), it loads no model in which two nodes read
    one, such as a weight of two products.
    """
    import onnx_ir as ir

    for node in list(graph):
        constant = node.inputs[0] if node.op_type == "DequantizeLinear" else None
        if constant is None or constant.const_value is None:
            continue
        (result,) = node.outputs
        readers = [use for use in result.uses() if use.node.graph is graph]
        for number, (reader, place) in enumerate(readers[1:], 1):
            given = [_copied(graph, x, number) for x in node.inputs]
            copy = ir.Node("", node.op_type, given, node.attributes.values())
            (floats,) = copy.outputs
            copy.name, floats.name = f"{node.name}_{number}", f"{result.name}_{number}"
            floats.type, floats.shape = result.type, result.shape
            graph.append(copy)
            reader.replace_input_with(place, floats)


def _copied(graph: Any, constant: Any, number: int) -> Any:
    """A constant of a graph with the same values, and a number behind its name."""
    import onnx_ir as ir

    values = ir.Tensor(constant.const_value.numpy(), name=f"{constant.name}_{number}")
    copy = ir.Value(name=values.name, type=constant.type, shape=constant.shape, const_value=values)
    graph.register_initializer(copy)
    return copy


def _has_integers(model: Any) -> bool:
    """Whether something of a model has been quantized."""
    return any(node.op_type == "DequantizeLinear" for node in model.graph)
