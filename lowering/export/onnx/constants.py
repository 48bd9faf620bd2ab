"""Names and constants of a model, of which there is each once."""

import hashlib
from typing import Any

import numpy as np
import onnx_ir as ir


class Names:
    """Names of values and nodes, each of which is given once."""

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
    """Constants of a model; those that are equal are one."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._by_content: dict[Any, ir.Value] = {}

    def value(self, array: np.ndarray, name: str) -> ir.Value:
        """A value for an array, which must not change."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        digest = hashlib.blake2b(array.reshape(-1).view(np.uint8).data, digest_size=16)
        key = array.dtype, array.shape, digest.digest()
        if key not in self._by_content:
            self._by_content[key] = self.tensor(ir.Tensor(array), name)
        return self._by_content[key]

    def tensor(self, tensor: Any, name: str) -> ir.Value:
        """A value for a tensor of `onnx_ir`."""
        tensor.name = self._names.unique(name)
        return ir.Value(
            name=tensor.name,
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
