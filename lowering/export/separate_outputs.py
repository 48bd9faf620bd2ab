"""Gives each output of a TF Lite model a tensor of its own.

If an output is an input or another output, `CompiledModel` returns the wrong buffer; see
`tflite.runtime_quirks.outputs_that_are_inputs`.
"""

import collections
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from lowering.export import signatures
from lowering.tensors import loops

# Outputs by name that are one tensor, and whether it is that of an input.
_Shared = list[tuple[list[str], bool]]

# The dtypes that LiteRT has an op for, whose result is its operand.
_COPIED = (tf.float32, tf.int32, tf.int64, tf.bool)


def shared(root: Any) -> dict[str, _Shared]:
    """The outputs that share a tensor with an input or another output, by name of the signature."""
    found = {}
    for signature in root.signatureDefs or ():
        inputs = set(root.subgraphs[signature.subgraphIndex].inputs)
        names = collections.defaultdict(list)
        for output in signature.outputs or ():
            names[output.tensorIndex].append(output.name.decode())
        groups = [(group, i in inputs) for i, group in names.items()]
        groups = [(group, is_input) for group, is_input in groups if is_input or len(group) > 1]
        if groups:
            found[signature.signatureKey.decode()] = groups
    return found


def separated(concrete: Any, groups: _Shared) -> Any:
    """A concrete function some of whose results are copies, by ops that no converter removes."""
    concrete = signatures.flat(concrete)
    placeholders = signatures.inputs(concrete)

    def call(*tensors: Any) -> dict[str, tf.Tensor]:
        results = signatures.named(concrete, signatures.results(concrete, tensors))
        for group, is_input in groups:
            _separate(results, group, is_input)
        return results

    specs = [tf.TensorSpec(x.shape, x.dtype, x.op.name) for x in placeholders]
    return tf.function(call, autograph=False).get_concrete_function(*specs)


def _separate(results: dict[str, tf.Tensor], group: Sequence[str], is_input: bool) -> None:
    """Gives each of several results that share a tensor a tensor of its own, a copy."""
    last = results[group[0]]
    if last.dtype not in _COPIED:
        return
    for name in group if is_input else group[1:]:
        last = results[name] = loops.copy(last)
