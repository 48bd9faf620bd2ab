"""The arguments of `convert` that choose a target."""

from lowering.targets import TF, XLA, resolve


def test_resolving_a_target():
    assert resolve(True, None) is XLA
    assert resolve(False, None) is TF
    assert resolve(True, "tf") is TF
    assert resolve(True, XLA) is XLA
