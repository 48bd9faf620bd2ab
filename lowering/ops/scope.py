"""What the modules below the rules ask of the context of a rule, which fulfils these protocols."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax.extend.core as jex_core
import tensorflow as tf

from lowering.ops.dims import Size
from lowering.targets import Mode, Target


class Sizes(Protocol):
    """The sizes of dimensions, which may be symbolic."""

    def size(self, dim: Any) -> Size:
        """The size of a dimension: an int where it is known, else an int32 scalar."""

    def shape(self, dims: Sequence[Any]) -> tf.Tensor:
        """The sizes of dimensions as one int32 vector."""


class Scope(Sizes, Protocol):
    """One equation; see `lowering.core.context.Context`."""

    @property
    def eqn(self) -> jex_core.JaxprEqn: ...

    @property
    def in_avals(self) -> list[Any]: ...

    @property
    def out_avals(self) -> list[Any]: ...

    @property
    def target(self) -> Target: ...

    @property
    def mode(self) -> Mode: ...

    @property
    def takes_xla_ops(self) -> bool: ...

    def by_mode(
        self, op_by_op: Callable[..., Any], compiled: Callable[..., Any], *operands: Any
    ) -> Any: ...

    def equation(self, eqn: jex_core.JaxprEqn, *operands: Any) -> list[tf.Tensor]: ...

    def lower(
        self,
        fun: Callable[..., Any],
        *operands: Any,
        avals: Sequence[Any] | None = None,
        as_function: bool = False,
        **params: Any,
    ) -> Any: ...
