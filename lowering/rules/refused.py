"""Primitives that TensorFlow ops cannot express, and why."""

from lowering.registry import refuse

refuse(
    "precv", "psend", reason="it is one half of an exchange that only JAX on GPUs has; use ppermute"
)

refuse(
    "dot_product_attention_bwd",
    "dot_product_attention_bwd_wrapper",
    "dot_product_attention_fp8_bwd",
    "dot_product_attention_fp8_bwd_wrapper",
    "dot_product_attention_fp8_fwd",
    "dot_product_attention_fp8_fwd_wrapper",
    "dot_product_attention_fwd",
    "dot_product_attention_fwd_wrapper",
    reason="it is a kernel of cuDNN; choose an implementation that is not for one kind of GPU",
)

refuse(
    "core_map",
    "mpmd_map",
    "pallas_call",
    "run_scoped",
    reason="it is a kernel of Pallas, written for the cores of an accelerator; use jax.lax",
)

refuse(
    "call_exported",
    reason="it calls a program that is known as StableHLO only; convert the function it came from",
)

refuse("ffi_call", reason="it calls native code, by an interface that TensorFlow does not have")

refuse(
    "get",
    "swap",
    "addupdate",
    reason="it is on a reference from outside of the function; pass in the value, and return it",
)
