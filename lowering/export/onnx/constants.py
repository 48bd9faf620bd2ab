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

# Under which key a constant has those that it is made of, one after the other along an axis.
JOINED = "joined"


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

    def value(self, array: np.ndarray, name: str) -> ir.Value:
        """A value for an array, which must not be modified afterwards."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        digest = hashlib.blake2b(array.reshape(-1).view(np.uint8).data, digest_size=16)
        key = array.dtype, array.shape, digest.digest()
        if key not in self._by_content:
            self._by_content[key] = self.tensor(ir.Tensor(array), name)
        return self._by_content[key]

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

        if all(tensor.size <= _FEW for tensor in tensors):
            return self.value(join(), name)
        if sum(tensor.nbytes for tensor in tensors) <= SMALL_BYTES:
            made = self.tensor(ir.Tensor(join()), name)
        else:
            sizes = list(tensors[0].shape.numpy())
            sizes[axis] = sum(tensor.shape.numpy()[axis] for tensor in tensors)
            dtype, shape = tensors[0].dtype, ir.Shape(sizes)
            made = self.tensor(ir.LazyTensor(lambda: ir.Tensor(join()), dtype, shape), name)
        self._joined[key] = made
        made.meta[JOINED] = tuple(parts), axis
        return made

    def tensor(self, tensor: Any, name: str) -> ir.Value:
        """A value for a tensor of `onnx_ir`."""
        tensor.name = self._names.unique(name)
        return ir.Value(
            name=tensor.name,
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
