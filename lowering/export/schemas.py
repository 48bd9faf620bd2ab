"""Schemas of file formats from TensorFlow, which itself takes seconds to import."""

import functools
import importlib.util
import pathlib
from typing import Any

# Where TensorFlow has the classes of TF Lite's schema, which need nothing else of it.
_TFLITE = pathlib.Path("lite", "python", "schema_py_generated.py")

# DataTypes of TensorFlow that have other names in NumPy.
_NAMES = {"float": "float32", "double": "float64", "half": "float16"}


@functools.cache
def tflite() -> Any:
    """The classes of TF Lite's schema, as a module.

    Raises:
      ImportError: if TensorFlow is not installed.
    """
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        raise ImportError("this needs TensorFlow, which is not installed")
    path = pathlib.Path(spec.origin).parent / _TFLITE
    found = importlib.util.spec_from_file_location(f"{__name__}.{path.stem}", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def dtype(name: str) -> str:
    """The name of a dtype from that of TensorFlow's DataType, such as DT_FLOAT.

    Raises:
      ValueError: if it is the name of no DataType.
    """
    prefix, _, kind = name.lower().rpartition("dt_")
    if prefix or not kind:
        raise ValueError(f"{name} is no dtype of TensorFlow")
    return _NAMES.get(kind, kind)
