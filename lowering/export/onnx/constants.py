"""Names and constants of a model, of which there is each once."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

# Constants of more bytes are changed when they are written.
SMALL_BYTES = 1 << 20

# Constants of so many elements are stored again where they are part of another one.
_FEW = 64

# Under which key a constant says that it holds none of the user's parameters. It is not quantized.
COMPUTED = "computed"

# Under which key a constant has those that it is made of, one after the other along an axis.
JOINED = "joined"


def is_computed(x: ir.Value | None) -> bool:
    """Whether a value is a constant that holds none of the user's parameters."""
    return x is not None and bool(x.meta.get(COMPUTED))


class Names:
    """Unique names of values and nodes."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """A name, with a number if it has been given before."""
        new = name
        while new in self._counts:
            self._counts[name] += 1
            new = f"{name}_{self._counts[name]}"
        self._counts[new] = 0
        return new


class Constants:
    """The constants of a model; equal ones are stored once."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._by_content: dict[Any, ir.Value] = {}
        self._joined: dict[Any, ir.Value] = {}

    def value(self, array: np.ndarray, name: str, computed: bool = False) -> ir.Value:
        """A value for an array, which must not be modified afterwards.

        Args:
          array: the array.
          name: what the value is called if it is new.
          computed: whether the array holds none of the user's parameters.
        """
        array = np.ascontiguousarray(array).reshape(array.shape)
        digest = hashlib.blake2b(array.reshape(-1).view(np.uint8).data, digest_size=16)
        key = array.dtype, array.shape, digest.digest()
        if key not in self._by_content:
            self._by_content[key] = self.tensor(ir.Tensor(array), name, computed)
        found = self._by_content[key]
        found.meta[COMPUTED] = is_computed(found) and computed
        return found

    def joined(self, parts: Sequence[ir.Value], axis: int, name: str) -> ir.Value:
        """The concatenation of constants along an axis.

        If some of them are stored for other uses, a node will join them: see `initializers`.
        """
        key = axis, *map(id, parts)
        if key in self._joined:
            return self._joined[key]
        tensors = [x.const_value for x in parts if x.const_value is not None]

        def join() -> np.ndarray:
            return np.concatenate([tensor.numpy() for tensor in tensors], axis)

        are_computed = all(map(is_computed, parts))
        if all(tensor.size <= _FEW for tensor in tensors):
            return self.value(join(), name, are_computed)
        if sum(tensor.nbytes for tensor in tensors) <= SMALL_BYTES:
            made = self.tensor(ir.Tensor(join()), name, are_computed)
        else:
            sizes = list(tensors[0].shape.numpy())
            sizes[axis] = sum(tensor.shape.numpy()[axis] for tensor in tensors)
            dtype, shape = tensors[0].dtype, ir.Shape(sizes)
            lazy = ir.LazyTensor(lambda: ir.Tensor(join()), dtype, shape)
            made = self.tensor(lazy, name, are_computed)
        self._joined[key] = made
        made.meta[JOINED] = tuple(parts), axis
        return made

    def tensor(self, tensor: Any, name: str, computed: bool = False) -> ir.Value:
        """A new value for a tensor of `onnx_ir`; see `value`."""
        tensor.name = self._names.unique(name)
        made = ir.Value(
            name=tensor.name,
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        made.meta[COMPUTED] = computed
        return made
