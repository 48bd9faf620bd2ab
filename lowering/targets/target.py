"""Targets: who will run the TensorFlow ops, and what is known about that.

A target inherits the rules of its parent and overrides only those that its runtime needs or
rewards. `tf` is the base: plain TensorFlow ops that any TensorFlow runtime executes.

The numerics of a target are exact or natural. Exact graphs compute what `jax.jit` computes, NaN and
the signs of zeros included, whatever ops that takes. Natural graphs have the op that a person would
have written; their results are the same where no NaN is involved, but for the signs of zeros.

A target is a folder of data. `target.json` names its parent and its capabilities, which are
attributes of `Target`; those that it does not name are its parent's. `ops.json` says which ops it
runs, and `known.json` which it has by name; `quirks.py` says what it gets wrong. A target inherits
the tables and quirks of its parent, too.
"""

import dataclasses
import functools
import json
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lowering.targets.quirk import Quirk

Table = Mapping[str, frozenset[str]]


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """What runs lowered graphs, and its capabilities.

    Attributes:
      name: what `convert(target=...)` takes.
      folder: where its data is.
      parent: the target whose rules and data this one inherits, or None for the base.
      is_abstract: whether programs cannot be lowered for it, as it is only a parent of targets.
      is_natural: whether its numerics are natural.
      has_tensorflow_kernels: whether TensorFlow's own kernels run what is not compiled; see
        `lowering.ops.tuning`.
      has_xla_ops: whether the ops may be XLA's where it is sure to compile them.
      has_64_bits: whether it has arithmetic of 64 bits. Without, exports are of 32 bits.
      types: for dtypes that it has no arithmetic for, what programs do instead ("promote",
        "bitcast" or "split"), and in which storage dtype. In `target.json` a dtype that is "legal"
        is one that the target has, though its parent has not.
      computed_like: by a dtype, another one: it computes with the first wherever with the second.
      exact_integer_bits: up to how many bits its integers are exact in all of its runtimes.
      rounds_by_casts: whether floats are rounded to a promoted dtype by a cast to it and back.
      broadcast_groups: how many groups of neighbouring axes ops broadcast.
      has_grouped_convolutions: whether convolutions have groups of several features.
      has_dilated_strides: whether convolutions have both strides and dilations.
      repeats_padded_ends: whether padding by mirror images may repeat the elements at the ends.
      block_writes: the dtypes for which it has an op that writes a block into an array.
      scatters_blocks: whether it writes a block fastest by the indices of its rows.
      shortest_transform: from which length on, a power of two, an op for Fourier transforms is
        faster than products with matrices, and as exact; infinite where there is none.
      ops_of_parts: ops of complex numbers that its exporter writes for their parts, though no model
        has complex numbers; no table has these, as inputs and outputs are other numbers.
      normalized_convolutions: the convolutions that it joins with a FusedBatchNorm on them.
      ops_of_volumes: the ops of three spatial axes that it runs faster than those of two: pooling
        ops, and transposed convolutions.
      ops_since: ops that came later than others, and with which version of its set of ops.
      version: the version of that set; None is for the newest.
    """

    name: str
    folder: pathlib.Path
    parent: "Target | None" = None
    is_abstract: bool = False
    is_natural: bool = False
    has_tensorflow_kernels: bool = True
    has_xla_ops: bool = False
    has_64_bits: bool = True
    types: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    computed_like: Mapping[str, str] = dataclasses.field(default_factory=dict)
    exact_integer_bits: int = 64
    rounds_by_casts: bool = False
    broadcast_groups: int = 5
    has_grouped_convolutions: bool = True
    has_dilated_strides: bool = True
    repeats_padded_ends: bool = True
    block_writes: Sequence[str] = ()
    scatters_blocks: bool = False
    shortest_transform: float = math.inf
    ops_of_parts: Sequence[str] = ()
    normalized_convolutions: Sequence[str] = ("Conv2D",)
    ops_of_volumes: Sequence[str] = ()
    ops_since: Mapping[str, int] = dataclasses.field(default_factory=dict)
    version: int | None = None

    @property
    def is_consumer(self) -> bool:
        """Whether something other than TensorFlow runs its graphs."""
        return not self.has_tensorflow_kernels

    def emulates(self, dtype: Any) -> bool:
        """Whether programs have another dtype in place of one of JAX's."""
        return bool(self.types) and _name(dtype) in self.types

    def splits(self, dtype: Any) -> bool:
        """Whether programs have several values in place of one of a dtype of JAX's."""
        return bool(self.types) and "split" in self.types.get(_name(dtype), ())

    @functools.cached_property
    def storage(self) -> Mapping[str, str]:
        """The dtypes in place of those that it emulates, which it has itself."""
        direct = {dtype: storage for dtype, of in self.types.items() for storage in of.values()}

        def last(dtype: str) -> str:
            return last(direct[dtype]) if dtype in direct else dtype

        return {dtype: last(dtype) for dtype in direct}

    @functools.cached_property
    def chain(self) -> tuple["Target", ...]:
        """The target and those that it inherits from, the nearest first."""
        return (self, *(self.parent.chain if self.parent else ()))

    @functools.cached_property
    def ops(self) -> Table:
        """The dtypes that it runs for each op; nothing where TensorFlow's own kernels do.

        The dtype of a `Cast` is a pair, such as "int32->float32".
        """
        table = self._with_likes(_sets(self._nearest("ops")))
        return {op: dtypes for op, dtypes in table.items() if self.has_op(op)}

    @functools.cached_property
    def refused(self) -> Table:
        """The dtypes of each op that its converter or its runtime does not take."""
        refused = dict(_sets(self._nearest("refused")))
        for op, dtypes in _sets(self._nearest("ops")).items():
            if not self.has_op(op):
                refused[op] = dtypes | refused.get(op, frozenset())
        return {op: dtypes - self.ops.get(op, frozenset()) for op, dtypes in refused.items()}

    @functools.cached_property
    def failing_kernels(self) -> Table:
        """The dtypes for which a kernel of TensorFlow is there, but fails in some mode."""
        return _sets(self._nearest("failing_kernels"))

    @functools.cached_property
    def ranks(self) -> Mapping[str, int]:
        """The highest ranks of the operands of ops; those that are not there take any rank."""
        found: dict[str, int] = {}
        for data in self._tables():
            for op, rank in data.get("ranks", {}).items():
                found[op] = min(rank, found.get(op, rank))
        return found

    @functools.cached_property
    def known_ops(self) -> frozenset[str]:
        """The names of all ops that it has, whatever the dtypes; only TF.js lists them."""
        paths = (target.folder / "known.json" for target in self.chain)
        found = next((path for path in paths if path.exists()), None)
        return frozenset(json.loads(found.read_text()) if found else ())

    def has_op(self, op: str) -> bool:
        """Whether an op, if the target ever has it, is there in its version."""
        return self.version is None or self.ops_since.get(op, 0) <= self.version

    def max_rank(self, op: str) -> float:
        """The highest rank that it takes of the operands of an op; infinite if all are taken."""
        return self.ranks.get(op, math.inf)

    def lacks(self, op: str, dtype: str) -> bool:
        """Whether it is known to lack an op for a dtype of its first operand."""
        return dtype in self.refused.get(op, ()) and op not in self.ops_of_parts

    def has(self, quirk: Quirk) -> bool:
        """Whether a quirk is one of its own, or of those that it inherits from."""
        return any(target.name == quirk.target for target in self.chain)

    def computing_in(self, dtype: str) -> "Target":
        """The target, where it computes in a dtype that it promotes otherwise."""
        return _computing_in(self, dtype)

    def of_version(self, version: int) -> "Target":
        """The target, with the ops that a version of its set of ops has."""
        return _of_version(self, version)

    def _with_likes(self, table: Table) -> Table:
        """A table of ops with the dtypes that are computed like others."""
        for dtype, like in self.computed_like.items():
            pairs = [(f"{like}->", f"{dtype}->"), (f"->{like}", f"->{dtype}")]
            table = {
                op: dtypes
                | {dtype for each in dtypes if each == like}
                | {each.replace(*pair) for each in dtypes for pair in pairs}
                for op, dtypes in table.items()
            }
        return table

    def _tables(self) -> Iterator[Mapping[str, Any]]:
        for target in self.chain:
            path = target.folder / "ops.json"
            if path.exists():
                yield json.loads(path.read_text())

    def _nearest(self, part: str) -> Mapping[str, Sequence[str]]:
        return next((data[part] for data in self._tables() if part in data), {})


@functools.cache
def _computing_in(target: Target, dtype: str) -> Target:
    types = {name: of for name, of in target.types.items() if name != dtype}
    like = target.types[dtype]["promote"]
    return dataclasses.replace(target, types=types, computed_like={dtype: like})


@functools.cache
def _of_version(target: Target, version: int) -> Target:
    is_newest = all(since <= version for since in target.ops_since.values())
    return target if is_newest else dataclasses.replace(target, version=version)


@functools.lru_cache(maxsize=1024)
def _name(dtype: Any) -> Any:
    # NumPy makes the name anew each time.
    return getattr(dtype, "name", dtype)


def _sets(table: Mapping[str, Sequence[str]]) -> Table:
    return {op: frozenset(dtypes) for op, dtypes in table.items()}


def parent_of(folder: pathlib.Path) -> str | None:
    """The name of the parent of the target in a folder."""
    return json.loads((folder / "target.json").read_text())["parent"]


def read(folder: pathlib.Path, parent: Target | None) -> Target:
    """The target in a folder, which has the folder's name.

    Raises:
      TypeError: for a capability that there is not.
    """
    own = json.loads((folder / "target.json").read_text())
    del own["parent"]
    if parent is None:
        return Target(folder.name, folder, **own)
    types = {**parent.types, **own.pop("types", {})}
    types = {dtype: of for dtype, of in types.items() if "legal" not in of}
    own = {"is_abstract": False, **own, "types": types}
    return dataclasses.replace(parent, name=folder.name, folder=folder, parent=parent, **own)
