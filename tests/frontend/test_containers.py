"""Arguments in the containers that TensorFlow wraps around those of a module."""

import numpy as np
import tensorflow as tf

from lowering import convert
from tests.helpers import assert_same


def test_containers_of_a_module():
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.params = {"w": [tf.Variable(2.0), tf.Variable(3.0)], "b": (tf.Variable(1.0),)}

    params = Module().params
    fun = convert(lambda p, x: p["w"][0] * x + p["w"][1] + p["b"][0])
    assert_same(fun(params, 5.0), np.float32(14))
