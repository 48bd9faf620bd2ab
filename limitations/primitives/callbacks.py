"""Limitations of callbacks into Python."""

from limitations.consumers import NO_CALLBACKS
from limitations.limitation import Limitation

_COMPILED = Limitation(
    reason="XLA has no kernel for TensorFlow's PyFunc, by which a graph calls Python.",
    error="lowering error: .*cannot call back into Python",
    modes=("compiled",),
    variants=None,
)

LIMITATIONS = {
    **dict.fromkeys(("pure_callback", "io_callback"), (_COMPILED, NO_CALLBACKS)),
    **dict.fromkeys(("debug_callback", "debug_print"), (_COMPILED,)),
}
