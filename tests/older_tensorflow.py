"""A program for a TensorFlow without JAX: runs a saved model and compares it with what is given.

    python older_tensorflow.py DIRECTORY

The directory has a `model`, and in `arrays.npz` what its functions take and should return.
Prints the version of TensorFlow, and the names of the functions that were compared.
"""

import collections
import importlib.util
import pathlib
import sys

import numpy as np
import tensorflow as tf

assert importlib.util.find_spec("jax") is None
directory = pathlib.Path(sys.argv[1])
cases = collections.defaultdict(lambda: collections.defaultdict(list))
for path, array in np.load(directory / "arrays.npz").items():
    name, kind, _ = path.split("/")
    cases[name][kind].append(array)

model = tf.saved_model.load(str(directory / "model"))
print(tf.__version__)
for name, case in cases.items():
    arguments = list(map(tf.constant, case["arguments"]))
    if name == "gradient":
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            results = model.model(*arguments)
        results = tape.gradient(results, [model.w, *arguments])
    else:
        results = tf.nest.flatten(getattr(model, name)(*arguments))
    for actual, expected in zip(results, case["results"], strict=True):
        assert actual.dtype.as_numpy_dtype == expected.dtype, name
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-5, err_msg=name)
    print(name)
