"""The folders of targets, and the targets in them."""

import pathlib

from lowering.targets import target as target_
from lowering.targets.target import Target

FOLDER = pathlib.Path(__file__).parent

_ALL: dict[str, Target] = {}
# All targets of programs, by name.
TARGETS: dict[str, Target] = {}


def add(folder: pathlib.Path) -> Target:
    """The target in a folder; `convert` knows it by the folder's name from now on.

    Raises:
      FileNotFoundError: if the folder has no `target.json`.
      KeyError: for a parent that is not there.
      TypeError: for a capability that there is not.
    """
    parent = target_.parent_of(folder)
    made = target_.read(folder, None if parent is None else _ALL[parent])
    _ALL[made.name] = made
    if not made.is_abstract:
        TARGETS[made.name] = made
    return made


TF, XLA, PORTABLE, CONSUMER, TFLITE, ONNX, TFJS = (
    add(FOLDER / name) for name in ("tf", "xla", "portable", "consumer", "tflite", "onnx", "tfjs")
)
for _path in sorted(FOLDER.glob("*/target.json")):
    if _path.parent.name not in _ALL:
        add(_path.parent)

# The names of the targets whose graphs something other than TensorFlow runs.
CONSUMERS = tuple(name for name, target in TARGETS.items() if target.is_consumer)


def all_targets() -> tuple[Target, ...]:
    """All targets, also those that others merely inherit from."""
    return tuple(_ALL.values())


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
    if TARGETS[name].has_xla_ops and not enable_xla:
        raise ValueError(f"target={name!r} needs enable_xla=True")
    return target if isinstance(target, Target) else TARGETS[name]
