"""Targets: who will run the TensorFlow ops.

A target inherits the rules of its parent and overrides only those that its consumer needs or
rewards. `tf` is the base: plain TensorFlow ops that any TensorFlow runtime executes.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Target:
    """A consumer of lowered graphs.

    Attributes:
      name: what `convert(target=...)` takes.
      parent: the name of the target whose rules this one inherits, or None for the base.
      has_tensorflow_kernels: whether TensorFlow's own kernels run what is not compiled; see
        `lowering.ops.tuning`.
    """

    name: str
    parent: str | None = None
    has_tensorflow_kernels: bool = True


TF = Target("tf")
XLA = Target("xla", parent="tf")

TARGETS = {target.name: target for target in (TF, XLA)}


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
