"""Primitives that JAX traces but does not compile; they raise the same errors here."""

from lowering.registry import rule


@rule("unreachable")
def unreachable(ctx, *operands, exc_type, message, **_):
    """It may be traced, but must not run."""
    raise exc_type(message)


@rule("custom_lin")
def custom_lin(ctx, *operands, **_):
    """The derivative of a function with a custom_vjp, which can only be transposed."""
    raise TypeError("forward-mode differentiation does not apply to a custom_vjp function")


@rule("check")
def check(ctx, *operands, debug, **_):
    """Outside of `checkify`, JAX ignores debug checks, and refuses to compile others."""
    if not debug:
        ctx.unsupported(
            "it raises an error that depends on values",
            "Apply jax.experimental.checkify.checkify to the function.",
        )
    return []
