"""Programs in which the same number in another dtype stands for each value of some dtypes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.passes.legalize.splitting import Walk
from lowering.targets import Target


class Promotion(Walk):
    """A jaxpr whose values of some dtypes are being promoted."""

    @staticmethod
    def promoted(dtype: Any, target: Target) -> Any:
        """The dtype in place of one that a target lacks; any other dtype itself."""
        raise NotImplementedError

    @classmethod
    def is_illegal(cls, aval: Any, target: Target) -> bool:
        dtype = getattr(aval, "dtype", None)
        return cls.promoted(dtype, target) is not dtype

    @classmethod
    def legal_avals(cls, aval: Any, target: Target) -> Sequence[Any]:
        is_illegal = cls.is_illegal(aval, target)
        return (aval.update(dtype=cls.promoted(aval.dtype, target)) if is_illegal else aval,)

    @classmethod
    def legal_arrays(cls, x: Any, aval: Any, target: Target) -> Sequence[Any]:
        is_illegal = cls.is_illegal(aval, target)
        return (np.asarray(x).astype(cls.promoted(aval.dtype, target)) if is_illegal else x,)

    def legal_dtype(self, dtype: Any) -> Any:
        """The dtype in place of one in this walk."""
        return self.promoted(dtype, self.target)
