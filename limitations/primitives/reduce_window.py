"""Limitations of reductions over windows."""

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

LIMITATIONS = {
    **dict.fromkeys(("reduce_window_max", "reduce_window_min"), (_LEAST,)),
}
