"""Tensor -> tensor, in TensorFlow: what rules are written in.

In all modules `ctx` is the context of the rule, `x` a tensor and `shape` its dimensions: ints, or
expressions over dimension variables.
"""
