"""A reason for more nodes than by hand."""

import dataclasses
from fnmatch import fnmatchcase

TARGETS = ("portable", "tflite", "onnx", "tfjs")


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why layers have more nodes.

    Attributes:
      text: the reason, a sentence.
      layers: names of layers, or patterns of them.
      targets: on which targets.
    """

    text: str
    layers: tuple[str, ...]
    targets: tuple[str, ...] = TARGETS

    def covers(self, name: str, target: str) -> bool:
        """Whether it is the reason for a layer on a target."""
        return target in self.targets and any(fnmatchcase(name, like) for like in self.layers)
