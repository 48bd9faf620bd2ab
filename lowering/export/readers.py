"""Readers of exported files, one for each format; they run nothing of what they read."""

import collections
import dataclasses
import io
import json
import pathlib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lowering.export import schemas, tflite_metadata
from lowering.export.descriptions import Array, Description, Signature
from lowering.export.packages import import_package

# The identifier of TF Lite models, at the fourth byte.
TFLITE = b"TFL3"

# Entries that the converter writes into each TF Lite model, and that say nothing about it.
_OF_CONVERTER = ("MLIR Converted.", "min_runtime_version", "CONVERSION_METADATA")

# The name of the function of a file whose format has one.
ONLY = "main"


def size_of_files(path: pathlib.Path) -> int:
    """The size of a file, or of all files of a directory."""
    files: Iterable[pathlib.Path] = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def of_bytes(model: bytes) -> Description:
    """What a TF Lite or ONNX model holds."""
    return of_tflite(model) if model[4:8] == TFLITE else of_onnx(model)


def of_tflite(model: bytes) -> Description:
    """What a TF Lite model holds."""
    schema = schemas.tflite()
    root = schema.Model.GetRootAsModel(model, 0)
    types = {value: name.lower() for name, value in vars(schema.TensorType).items()}
    builtins = {value: name for name, value in vars(schema.BuiltinOperator).items()}

    def array(graph: Any, index: int, name: str = "") -> Array:
        tensor = graph.Tensors(index)
        signature = tensor.ShapeSignatureAsNumpy() if tensor.ShapeSignatureLength() else None
        sizes = tensor.ShapeAsNumpy() if tensor.ShapeLength() else ()
        shape = tuple(
            None if size < 0 else int(size) for size in (sizes if signature is None else signature)
        )
        return Array(name or tensor.Name().decode(), types[tensor.Type()], shape)

    def arrays(graph: Any, item: Callable[[int], Any], count: int) -> tuple[Array, ...]:
        maps = map(item, range(count))
        return tuple(array(graph, m.TensorIndex(), m.Name().decode()) for m in maps)

    signatures = {}
    for i in range(root.SignatureDefsLength()):
        found = root.SignatureDefs(i)
        graph = root.Subgraphs(found.SubgraphIndex())
        signatures[found.SignatureKey().decode()] = Signature(
            arrays(graph, found.Inputs, found.InputsLength()),
            arrays(graph, found.Outputs, found.OutputsLength()),
        )
    if not signatures:
        graph = root.Subgraphs(0)
        signatures[ONLY] = Signature(
            tuple(array(graph, graph.Inputs(i)) for i in range(graph.InputsLength())),
            tuple(array(graph, graph.Outputs(i)) for i in range(graph.OutputsLength())),
        )
    ops: collections.Counter[str] = collections.Counter()
    for i in range(root.SubgraphsLength()):
        graph = root.Subgraphs(i)
        for j in range(graph.OperatorsLength()):
            code = root.OperatorCodes(graph.Operators(j).OpcodeIndex())
            custom = code.CustomCode()
            kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            ops[custom.decode() if custom else builtins[kind]] += 1
    buffers = {
        root.Metadata(i).Name(): root.Metadata(i).Buffer() for i in range(root.MetadataLength())
    }
    named = [x.decode() for x in buffers if x.decode() not in _OF_CONVERTER]
    # Files, such as those of labels, are in a zip archive behind the model.
    archive = io.BytesIO(model)
    files = zipfile.ZipFile(archive).namelist() if zipfile.is_zipfile(archive) else ()
    texts = {"description": (root.Description() or b"").decode()}
    if tflite_metadata.BUFFER in buffers:
        content = root.Buffers(buffers[tflite_metadata.BUFFER]).DataAsNumpy().tobytes()
        texts |= tflite_metadata.read(content)
        texts["labels"] = _labels(archive, tflite_metadata.label_files(content), files)
    return Description(
        "tflite",
        len(model),
        signatures,
        ops,
        {
            "version": str(root.Version()),
            **{title: text for title, text in texts.items() if text and text not in _OF_CONVERTER},
            **({"metadata": ", ".join(named)} if named else {}),
            **({"files": ", ".join(files)} if files else {}),
        },
    )


def _labels(archive: io.BytesIO, by_output: Mapping[str, str], files: Sequence[str]) -> str:
    """The labels of outputs, as ONNX models have them, from files of a zip archive."""
    labels = {
        output: zipfile.ZipFile(archive).read(file).decode(errors="replace").splitlines()
        for output, file in by_output.items()
        if file in files
    }
    return json.dumps(labels, ensure_ascii=False) if labels else ""


def of_onnx(
    model: bytes, folder: pathlib.Path | None = None, size: int | None = None
) -> Description:
    """What an ONNX model holds.

    Args:
      model: its bytes, of which weights may be left out.
      folder: where files with its weights are.
      size: the size of its own file in bytes, if that has more than `model`.
    """
    onnx = import_package("onnx", "onnx")
    proto = onnx.ModelProto.FromString(model)
    if not proto.HasField("graph"):
        raise ValueError("it has no graph")
    graph = proto.graph

    def array(value: Any) -> Array:
        tensor = value.type.tensor_type
        dtype = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        shape = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
            for dim in tensor.shape.dim
        ]
        return Array(
            value.name, {"float": "float32", "double": "float64"}.get(dtype, dtype), (*shape,)
        )

    def nodes(graph: Any) -> Iterator[Any]:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                for inner in (attribute.g, *attribute.graphs):
                    yield from nodes(inner)

    weights = {x.name for x in graph.initializer}
    signature = Signature(
        tuple(array(x) for x in graph.input if x.name not in weights),
        tuple(map(array, graph.output)),
    )
    counted = collections.Counter(
        node.op_type for g in (graph, *proto.functions) for node in nodes(g)
    )
    opsets = [f"{x.domain} {x.version}".strip() for x in proto.opset_import]
    texts = {
        "opset": ", ".join(opsets),
        "producer": f"{proto.producer_name} {proto.producer_version.split(' ')[0]}".strip(),
        "description": proto.doc_string,
        **{x.key: x.value for x in proto.metadata_props},
    }
    return Description(
        "onnx",
        (len(model) if size is None else size)
        + sum(size_of_files(file) for file in _weights_beside(graph, folder)),
        {ONLY: signature},
        counted,
        {title: text for title, text in texts.items() if text},
    )


def _weights_beside(graph: Any, folder: pathlib.Path | None) -> Iterator[pathlib.Path]:
    """The files that have the weights of an ONNX model, beside the model."""
    entries = (entry for weight in graph.initializer for entry in weight.external_data)
    for name in sorted({entry.value for entry in entries if entry.key == "location"}):
        if folder is not None and not (folder / name).is_file():
            raise ValueError(f"{folder / name} is missing, which has its weights")
        if folder is not None:
            yield folder / name


def of_tfjs(path: pathlib.Path) -> Description:
    """What a TF.js model holds; its path is that of `model.json` or of the directory."""
    folder = path if path.is_dir() else path.parent
    model = json.loads((path / "model.json" if path.is_dir() else path).read_text())
    topology = model.get("modelTopology") if isinstance(model, dict) else None
    if not isinstance(topology, dict) or "node" not in topology:
        raise ValueError("it is no graph model")
    for group in model["weightsManifest"]:
        for shard in group["paths"]:
            if not (folder / shard).is_file():
                raise ValueError(f"{folder / shard} is missing")
    functions = topology.get("library", {}).get("function", ())
    nodes = [*topology["node"], *(node for f in functions for node in f["nodeDef"])]
    ops = collections.Counter(node["op"] for node in nodes)
    for op in ("Const", "Placeholder"):
        ops.pop(op, None)

    def arrays(found: Mapping[str, Any]) -> tuple[Array, ...]:
        return tuple(
            Array(
                name,
                schemas.dtype(info["dtype"]),
                tuple(
                    None if int(dim["size"]) < 0 else int(dim["size"])
                    for dim in info["tensorShape"].get("dim", ())
                ),
            )
            for name, info in found.items()
        )

    signature = model["signature"]
    weights = [x for group in model["weightsManifest"] for x in group["weights"]]
    texts = {
        "weights": f"{len(weights)}, {_quantized(weights)}",
        "producer": f"{model.get('convertedBy') or ''}, TensorFlow {model.get('generatedBy')}",
        **{key: str(x) for key, x in model.get("userDefinedMetadata", {}).items()},
    }
    inputs, outputs = arrays(signature["inputs"]), arrays(signature["outputs"])
    return Description("tfjs", size_of_files(folder), _by_function(inputs, outputs), ops, texts)


def _by_function(inputs: Iterable[Array], outputs: Iterable[Array]) -> dict[str, Signature]:
    """The signatures of a TF.js model, in which names of several functions are `function/name`."""
    found: dict[str, tuple[list[Array], list[Array]]] = {}
    for side, arrays in enumerate((inputs, outputs)):
        for array in arrays:
            function, _, name = array.name.rpartition("/")
            of_function = found.setdefault(function or ONLY, ([], []))
            of_function[side].append(dataclasses.replace(array, name=name))
    return {name: Signature(tuple(a), tuple(b)) for name, (a, b) in found.items()}


def _quantized(weights: Iterable[Mapping[str, Any]]) -> str:
    """How weights of TF.js are stored."""
    dtypes = {x["quantization"]["dtype"] for x in weights if "quantization" in x}
    return f"some stored as {', '.join(sorted(dtypes))}" if dtypes else "stored as they are"
