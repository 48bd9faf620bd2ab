"""Layers and functions that people use, each beside the same thing written by hand in TensorFlow.

A module has a function that yields its layers. `counting` says how many nodes the graphs of both
have, and `reasons` why some of ours have more.
"""

from harnesses.layers.layer import Layer, all_layers

__all__ = ["Layer", "all_layers"]
