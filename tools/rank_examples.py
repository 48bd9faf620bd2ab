"""Examples of ops on tensors of many axes: which rank is the highest that a runtime takes."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.ops import ranks
from tools.op_examples import Example, example

# The highest rank that is tried.
MOST = 8

# The ops that are tried beside those that `lowering.ops.ranks` makes to fit.
_OTHERS = frozenset(
    "BatchMatMulV2 BroadcastTo ExpandDims GatherNd GatherV2 OneHot PadV2 Reshape ReverseV2 "
    "ScatterNd Slice Squeeze StridedSlice TensorScatterUpdate Tile TopKV2 Transpose".split()
)
OPS = ranks.FITTED | _OTHERS


def rank_examples(op: str, dtype: str, rank: int) -> list[Example]:
    """The forms of an op on operands of a rank and dtype."""
    with_numbers = _Forms(op, np.dtype(dtype), [2 + axis % 2 for axis in range(rank)])
    return list(with_numbers.all())


class _Forms:
    """The forms of one op, on arrays whose axes have two and three elements in turn."""

    def __init__(self, op: str, dtype: np.dtype, sizes: list[int]) -> None:
        self.op, self.dtype, self.sizes = op, dtype, sizes
        self.rank, self.middle = len(sizes), len(sizes) // 2
        self.rng = np.random.default_rng(0)

    def array(self, sizes: list[int] | None = None, dtype: Any = None) -> np.ndarray:
        sizes = self.sizes if sizes is None else sizes
        numbers = self.rng.integers(1, 4, sizes)
        return (numbers > 2 if self.dtype == np.bool_ else numbers).astype(dtype or self.dtype)

    def make(self, *operands: Any, **params: Any) -> Example:
        return example(self.op, *operands, **params)

    def every_other(self, first: int) -> list[int]:
        """The sizes of the array, with 1 in place of every other one."""
        return [size if axis % 2 == first else 1 for axis, size in enumerate(self.sizes)]

    def all(self) -> Iterator[Example]:
        """Yields an example of each form."""
        if self.op in ranks.UNARY:
            to = tf.int32 if self.dtype == np.float32 else tf.float32
            attrs = {"DstT": to, "result": to} if self.op == "Cast" else {}
            yield self.make(self.array(), **attrs)
        elif self.op == "SelectV2":
            flags = self.array(self.every_other(0)) > 1
            yield self.make(flags, self.array(self.every_other(1)), self.array())
            yield self.make(self.array() > 1, self.array(), self.array())
        elif self.op in ranks.BROADCASTING:
            yield self.make(self.array(self.every_other(0)), self.array(self.every_other(1)))
            yield self.make(self.array(), self.array())
            yield self.make(self.array(), self.array([]))
        elif self.op in ranks.REDUCTIONS:
            for axes in ([0], [self.middle], [self.rank - 1], list(range(0, self.rank, 2))):
                yield self.make(self.array(), np.array(axes, np.int32), known=(1,))
        elif self.op in ranks.SCANS:
            yield self.make(self.array(), np.int32(self.middle), known=(1,))
        elif self.op in ranks.POSITIONS:
            axis, result = np.int32(self.middle), tf.int32
            yield self.make(self.array(), axis, known=(1,), result=result, output_type=result)
        elif self.op in ranks.OF_ROWS:
            yield self.make(self.array())
        else:
            yield from _OF_MOVEMENT[self.op](self)


def _integers(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def _pad(forms: _Forms) -> Iterator[Example]:
    edges = _integers([1, 0], *([[0, 0]] * (forms.rank - 2)), [0, 1])
    yield forms.make(forms.array(), edges, forms.array([]), known=(1, 2))


def _slice(forms: _Forms) -> Iterator[Example]:
    ones = _integers(*[1] * forms.rank)
    yield forms.make(forms.array(), ones, ones, known=(1, 2))
    yield forms.make(forms.array(), ones, ones, known=(2,))


def _strided(forms: _Forms) -> Iterator[Example]:
    zeros, ends = _integers(*[0] * forms.rank), _integers(*forms.sizes)
    masks = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    yield forms.make(forms.array(), zeros, ends, zeros + 2, known=(1, 2, 3), **masks)


def _matmul(forms: _Forms) -> Iterator[Example]:
    *batch, rows, inner = forms.sizes
    for y in ([*batch, inner, 4], [inner, 4]):
        yield forms.make(forms.array(forms.sizes), forms.array(y), adj_x=False, adj_y=False)
    operands = forms.array([*batch, inner, rows]), forms.array([*batch, 4, inner])
    yield forms.make(*operands, adj_x=True, adj_y=True)


def _gather(forms: _Forms) -> Iterator[Example]:
    found, axis = _integers(1, 0, 1), np.int32(forms.middle)
    yield forms.make(forms.array(), found, axis, known=(2,), batch_dims=0)
    places = forms.array(dtype=np.int32)
    yield forms.make(forms.array([5]), places, np.int32(0), known=(2,), batch_dims=0)


def _gather_nd(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), _integers([1], [0]))


def _scatter(forms: _Forms) -> Iterator[Example]:
    shape = _integers(*forms.sizes)
    yield forms.make(_integers([1], [0]), forms.array(), shape, known=(2,), result=forms.dtype)


def _update(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), _integers([1], [0]), forms.array())


def _transpose(forms: _Forms) -> Iterator[Example]:
    order = [*range(1, forms.rank, 2), *range(0, forms.rank, 2)]
    yield forms.make(forms.array(), _integers(*order), known=(1,))


def _tile(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), _integers(*forms.every_other(0)), known=(1,))


def _broadcast(forms: _Forms) -> Iterator[Example]:
    narrow = forms.array(forms.every_other(0))
    yield forms.make(narrow, _integers(*forms.sizes), known=(1,))


def _reverse(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), _integers(forms.middle), known=(1,))


def _concat(forms: _Forms) -> Iterator[Example]:
    xs = forms.array(), forms.array()
    yield forms.make(*xs, np.int32(forms.middle), known=(2,))


def _pack(forms: _Forms) -> Iterator[Example]:
    sizes = forms.sizes[1:]
    yield forms.make(forms.array(sizes), forms.array(sizes), axis=forms.middle)


def _unpack(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), num=forms.sizes[forms.middle], axis=forms.middle)


def _split(forms: _Forms) -> Iterator[Example]:
    axis, count = np.int32(forms.middle), forms.sizes[forms.middle]
    yield forms.make(axis, forms.array(), known=(0,), result=forms.dtype, num_split=count)


def _split_unevenly(forms: _Forms) -> Iterator[Example]:
    axis, size = np.int32(forms.middle), forms.sizes[forms.middle]
    yield forms.make(forms.array(), _integers(1, size - 1), axis, known=(1, 2), num_split=2)


def _top(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), np.int32(2), known=(1,), sorted=True)


def _one_hot(forms: _Forms) -> Iterator[Example]:
    numbers = forms.array([])
    places = forms.array(forms.sizes[1:], np.int32)
    given = places, np.int32(3), numbers, numbers
    yield forms.make(*given, known=(1,), result=forms.dtype, axis=-1)


def _reshape(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(), _integers(*forms.sizes[::-1]), known=(1,))


def _squeeze(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array([1, *forms.sizes[1:]]), axis=[0])


def _expand(forms: _Forms) -> Iterator[Example]:
    yield forms.make(forms.array(forms.sizes[1:]), np.int32(1), known=(1,))


_OF_MOVEMENT: dict[str, Callable[[_Forms], Iterator[Example]]] = {
    "BatchMatMulV2": _matmul,
    "BroadcastTo": _broadcast,
    "ConcatV2": _concat,
    "ExpandDims": _expand,
    "GatherNd": _gather_nd,
    "GatherV2": _gather,
    "OneHot": _one_hot,
    "Pack": _pack,
    "PadV2": _pad,
    "Reshape": _reshape,
    "ReverseV2": _reverse,
    "ScatterNd": _scatter,
    "Slice": _slice,
    "Split": _split,
    "SplitV": _split_unevenly,
    "Squeeze": _squeeze,
    "StridedSlice": _strided,
    "TensorScatterUpdate": _update,
    "Tile": _tile,
    "TopKV2": _top,
    "Transpose": _transpose,
    "Unpack": _unpack,
}
