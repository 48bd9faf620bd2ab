"""Targets: who will run the TensorFlow ops.

A target inherits the rules of its parent and overrides only those that its consumer needs or
rewards. `tf` is the base: plain TensorFlow ops that any TensorFlow runtime executes.

The numerics of a target are exact or natural. Exact graphs compute what `jax.jit` computes, NaN and
the signs of zeros included, whatever ops that takes. Natural graphs have the op that a person would
have written; their results are the same where no NaN is involved, but for the signs of zeros.
"""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Target:
    """A consumer of lowered graphs.

    Attributes:
      name: what `convert(target=...)` takes.
      parent: the name of the target whose rules this one inherits, or None for the base.
      has_tensorflow_kernels: whether TensorFlow's own kernels run what is not compiled; see
        `lowering.ops.tuning`.
      is_natural: whether its numerics are natural.
      holds: for dtypes that the consumer has no arithmetic for, those in which programs hold their
        values: the integers that fit, the same bits of words, or floats that are rounded. Complex
        numbers are split into their parts.
      has_64_bits: whether it has arithmetic of 64 bits. Without, exports are of 32 bits.
    """

    name: str
    parent: str | None = None
    has_tensorflow_kernels: bool = True
    is_natural: bool = False
    holds: Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)
    has_64_bits: bool = True


def _consumer(name: str, parent: str, *, has_64_bits: bool) -> Target:
    return Target(
        name,
        parent,
        has_tensorflow_kernels=False,
        is_natural=True,
        holds=_HELD,
        has_64_bits=has_64_bits,
    )


TF = Target("tf")
XLA = Target("xla", parent="tf")
PORTABLE = Target("portable", parent="tf", is_natural=True)

# What the consumers of graphs have in common: all arithmetic is of int32 and float32.
_HELD = {
    **dict.fromkeys(("int8", "int16", "uint8", "uint16", "uint32"), "int32"),
    **dict.fromkeys(("float16", "bfloat16"), "float32"),
}
CONSUMER = _consumer("consumer", "portable", has_64_bits=False)
TFLITE = _consumer("tflite", "consumer", has_64_bits=False)
ONNX = _consumer("onnx", "consumer", has_64_bits=True)
TFJS = _consumer("tfjs", "consumer", has_64_bits=False)

# The targets whose graphs something other than TensorFlow runs.
CONSUMERS = (TFLITE.name, ONNX.name, TFJS.name)

TARGETS = {target.name: target for target in (TF, XLA, PORTABLE, TFLITE, ONNX, TFJS)}


def chain(target: Target) -> tuple[Target, ...]:
    """A target and those that it inherits rules from, the nearest first."""
    parents = {**TARGETS, CONSUMER.name: CONSUMER}
    found = [target]
    while found[-1].parent is not None:
        found.append(parents[found[-1].parent])
    return tuple(found)


def resolve(enable_xla: bool, target: str | Target | None) -> Target:
    """The target that `convert(enable_xla=..., target=...)` asks for.

    Raises:
      ValueError: for an unknown target name, or for `target="xla"` with `enable_xla=False`.
    """
    if target is None:
        return XLA if enable_xla else TF
    name = target.name if isinstance(target, Target) else target
    if name not in TARGETS:
        raise ValueError(f"unknown target {target!r}; choose one of {sorted(TARGETS)}")
    if name == XLA.name and not enable_xla:
        raise ValueError("target='xla' needs enable_xla=True")
    return TARGETS[name]
