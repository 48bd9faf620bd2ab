"""Patterns of ops that tf2onnx replaces by others that compute something else.

It looks at the kinds of ops and constants, and not at their shapes and dtypes. See
`onnx.quirks.factors_of_gemm`, `onnx.quirks.thresholds_of_relu` and
`onnx.quirks.bias_along_another_axis`.
"""

import functools
import importlib.util
from collections.abc import Mapping
from typing import Any

# What makes such patterns one op. Runtimes do so themselves, and look closer.
_REWRITERS = (
    "rewrite_gemm",
    "rewrite_layer_normalization",
    "rewrite_leakyrelu",
    "rewrite_thresholded_relu",
)
# The optimizer of `onnx.quirks.maxima_of_infinities`.
_EXCLUDED = "global_pool_optimizer"
_TRANSPOSES = "optimize_transpose"


@functools.cache
def tfonnx() -> Any:
    """The module `tf2onnx.tfonnx` without some of its rewriters.

    It is a copy, as others who use tf2onnx in this process have theirs as it is.
    """
    from tf2onnx import tfonnx as original

    spec: Any = importlib.util.spec_from_file_location(
        f"{original.__name__}_of_lowering", original.__file__
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in _REWRITERS:
        assert hasattr(module, name), name
        setattr(module, name, lambda graph, ops: ops)
    return module


def optimizers() -> Mapping[str, Any]:
    """The optimizers of tf2onnx by name, each as it should be."""
    from tf2onnx import optimizer

    found = {**optimizer._get_optimizers(), _TRANSPOSES: _transposes()}
    del found[_EXCLUDED]
    return found


@functools.cache
def _transposes() -> Any:
    """The optimizer that moves transposes behind other ops, to where they cancel out."""
    from tf2onnx.optimizer import transpose_optimizer

    class Transposes(transpose_optimizer.TransposeOptimizer):
        """It puts sums and products behind a convolution into it only where that is right."""

        def _add_handler(self, trans: Any, node: Any) -> Any:
            bias, product = node.inputs[1], trans.inputs[0]
            if product.type == "Conv" and _is_of_channels(bias) and self._is_own(bias):
                return super()._add_handler(trans, node)
            return self._handle_node_having_branches(trans, node)

        def _mul_handler(self, trans: Any, node: Any) -> Any:
            product = trans.inputs[0]
            if product.type == "Conv" and not self._is_own(product.inputs[1]):
                return False
            return super()._mul_handler(trans, node)

        def _is_own(self, node: Any) -> bool:
            """Whether nobody else uses the constant of a node, which will be changed."""
            return self._nodes_has_single_consumer_node([node])

    return Transposes


def _is_of_channels(node: Any) -> bool:
    """Whether a node is a constant with a number for each element of the last dimension."""
    if not node.is_const():
        return False
    value = node.get_tensor_value(as_list=False)
    return value.ndim > 0 and value.size == value.shape[-1]
