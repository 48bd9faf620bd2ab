"""Tensor -> tensor, in TensorFlow: what rules are written in."""
