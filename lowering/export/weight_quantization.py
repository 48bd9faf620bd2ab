"""Weights of 8 and 4 bits in TF Lite models, by AI Edge Quantizer.

TensorFlow's converter knows 8 bits for each channel alone. Here weights may have 4, and a scale for
each block of a channel, and embeddings are quantized, too.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

from lowering.export.computed_constants import Computed
from lowering.export.embedding_lookups import use_lookups
from lowering.export.packages import import_package
from lowering.export.tflite_objects import packed

_EXTRA = "quantization"
_BITS = (4, 8)
_BLOCKS = (32, 64, 128, 256)


@dataclasses.dataclass(frozen=True)
class Weights:
    """How the weights of a TF Lite model are quantized; see `to_tflite`.

    Attributes:
      bits: the bits of a weight, 8 or 4.
      block: how many weights of a channel have a scale of their own: 32, 64, 128 or 256; None for
        one scale for each channel, which channels have anyway that are no multiple of a block.
      integers: whether products are of integers, with activations that are quantized to 8 bits
        when the model runs; otherwise weights are made floats again when it is loaded, which keeps
        the file small and the model as slow as before.
      embedding: the bits of the rows of embeddings.
      last: the bits of the weights of a last layer, of which the products are outputs.

    Raises:
      ValueError: for other bits or blocks, and for blocks of weights that are made floats again.
    """

    bits: int = 8
    block: int | None = None
    integers: bool = True
    embedding: int = 8
    last: int = 8

    def __post_init__(self) -> None:
        for name in ("bits", "embedding", "last"):
            if getattr(self, name) not in _BITS:
                raise ValueError(f"{name} is 4 or 8, not {getattr(self, name)!r}")
        if self.block is not None and (self.block not in _BLOCKS or not self.integers):
            raise ValueError(
                f"block is one of {', '.join(map(str, _BLOCKS))} with integers=True, or None; "
                f"found block={self.block!r}, integers={self.integers!r}"
            )

    @property
    def least(self) -> int:
        """The fewest bits of a weight."""
        return min(self.bits, self.embedding, self.last)


# The quantizations that have a name.
NAMED = {"int8": Weights(), "int4": Weights(4, block=32)}


def of(quantize: Any) -> Weights | None:
    """The weights that an option asks for; None if it asks for something else."""
    return quantize if isinstance(quantize, Weights) else NAMED.get(quantize)


def check_installed() -> None:
    """Raises an ImportError with the command that installs the quantizer, if it is missing."""
    import_package("ai_edge_quantizer", _EXTRA)


def quantized(root: Any, weights: Weights, computed: Computed) -> bytes:
    """A model, which is an object, with weights that are quantized.

    Args:
      root: the model.
      weights: how they are quantized.
      computed: its constants that stay floats, for they are no weights.
    """
    quantizer = import_package("ai_edge_quantizer.quantizer", _EXTRA)
    types = import_package("ai_edge_quantizer.qtyping", _EXTRA)
    products = use_lookups(root, computed)
    made = quantizer.Quantizer(bytearray(packed(root)))
    add = made.add_dynamic_config if weights.integers else made.add_weight_only_config
    granularity = types.QuantGranularity
    of_blocks = granularity.CHANNELWISE
    if weights.block is not None:
        of_blocks = granularity[f"BLOCKWISE_{weights.block}"]
    names = types.TFLOperationName
    for kind in (names.FULLY_CONNECTED, *([names.CONV_2D] if weights.block is None else [])):
        add(".*", kind, weights.bits, of_blocks)
    if weights.block is not None:
        undivided = [name for name, n in products.lengths.items() if n % weights.block]
        _add_named(add, undivided, names.FULLY_CONNECTED, weights.bits)
    # Kernels multiply batches of matrices by integers if these are second, and have 8 bits.
    made.add_weight_only_config(".*", names.BATCH_MATMUL, weights.bits)
    if weights.integers:
        _add_named(add, products.batched, names.BATCH_MATMUL, 8)
    made.add_dynamic_config(".*", names.EMBEDDING_LOOKUP, weights.embedding)
    _add_named(add, products.last, names.FULLY_CONNECTED, weights.last)
    if products.computed:
        made.update_quantization_recipe(
            _pattern(products.computed), names.ALL_SUPPORTED, algorithm_key="no_quantize"
        )
    result: Any = made.quantize(enable_progress_bar=False, enable_progress_report=False)
    return bytes(result.quantized_model)


def _add_named(add: Callable[..., None], outputs: Sequence[str], kind: Any, bits: int) -> None:
    """Quantizes ops with outputs of some names; each channel has one scale."""
    if outputs:
        add(_pattern(outputs), kind, bits)


def _pattern(outputs: Sequence[str]) -> str:
    """What matches the scopes of ops: the name of the output of each, with a semicolon."""
    return f"^({'|'.join(map(re.escape, outputs))});$"
