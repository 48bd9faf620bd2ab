"""Limitations of reductions over windows."""

import dataclasses

from limitations import processors
from limitations.consumers import ONNX, RUNTIME
from limitations.limitation import Limitation, Looser

# Derivatives, and windows of unknown sizes, are computed without that kernel.
_WITH_KERNEL = (
    "plain",
    "vmap",
    "many axes",
    "symbolic batch",
    "rank promotion raises",
    "dtype promotion is strict",
    "JAX checks",
    "NaN raises",
    "highest matmul precision",
    "rbg keys",
    "sequential threefry",
    "without jit",
)


def _has_own_kernel(case: str) -> bool:
    """Whether the processor has a kernel for float16, which gives negative infinity."""
    return case.endswith("_float16") and processors.has_avx512_fp16()


_LEAST = Limitation(
    "TensorFlow's kernel of MaxPool gives the least finite number for a window that holds nothing "
    "but negative infinity.",
    looser=Looser.FINITE_FOR_INFINITE,
    dtypes=("float16", "float32", "float64"),
    modes=("eager", "graph"),
    targets=("portable",),
    variants=_WITH_KERNEL,
    where=lambda case, params: case.startswith("pairs") and not _has_own_kernel(case),
)

# In 32 bits, what becomes narrower is compared loosely, as no other dtype is.
_LEAST_IN_32_BITS = dataclasses.replace(
    _LEAST, dtypes=("float16", "float32"), variants=("32 bits",)
)

# With AVX-512, bfloat16 has a kernel that computes in float32, whose least number is rounded to
# negative infinity.
_LEAST_OF_BFLOAT16 = dataclasses.replace(
    _LEAST, dtypes=("bfloat16",), variants=(*_WITH_KERNEL, "32 bits"), avx512=False
)

_LEAST_OF_ONNX = dataclasses.replace(
    _LEAST,
    reason="onnxruntime's kernel of MaxPool gives the least finite number for a window that holds "
    "nothing but negative infinity.",
    dtypes=("float32",),
    modes=RUNTIME,
    targets=ONNX,
    variants=("plain",),
    where=lambda case, params: case == "pairs_float32",
)

LIMITATIONS = {
    **dict.fromkeys(
        ("reduce_window_max", "reduce_window_min"),
        (_LEAST, _LEAST_IN_32_BITS, _LEAST_OF_BFLOAT16, _LEAST_OF_ONNX),
    ),
}
