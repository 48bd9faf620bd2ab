"""Limitations of reductions over windows."""

import dataclasses

from limitations.consumers import ONNX, RUNTIME
from limitations.limitation import Limitation, Looser

_LEAST = Limitation(
    "TensorFlow's kernel of MaxPool gives the least finite number for a window that holds nothing "
    "but negative infinity.",
    looser=Looser.FINITE_FOR_INFINITE,
    dtypes=("float16", "float32", "float64"),
    modes=("eager", "graph"),
    targets=("portable",),
    where=lambda case, params: case.startswith("pairs"),
)

_LEAST_OF_ONNX = dataclasses.replace(
    _LEAST,
    reason="onnxruntime's kernel of MaxPool gives the least finite number for a window that holds "
    "nothing but negative infinity.",
    dtypes=("float32",),
    modes=RUNTIME,
    targets=ONNX,
    where=lambda case, params: case == "pairs_float32",
)

LIMITATIONS = {
    **dict.fromkeys(("reduce_window_max", "reduce_window_min"), (_LEAST, _LEAST_OF_ONNX)),
}
