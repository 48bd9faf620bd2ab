"""Limitations of callbacks into Python."""

from limitations.limitation import Limitation

_COMPILED = Limitation(
    reason="XLA has no kernel for TensorFlow's PyFunc, by which a graph calls Python.",
    error="lowering error: .*cannot call back into Python",
    modes=("compiled",),
    variants=None,
)

LIMITATIONS = {
    primitive: (_COMPILED,)
    for primitive in ("pure_callback", "io_callback", "debug_callback", "debug_print")
}
