"""Which target the arguments of `convert` name."""

from lowering.targets import TF, XLA
from lowering.targets.target import resolve


def test_resolving_a_target():
    assert resolve(True, None) is XLA
    assert resolve(False, None) is TF
    assert resolve(True, "tf") is TF
    assert resolve(True, XLA) is XLA
