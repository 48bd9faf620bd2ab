"""Checks one of Keras' applications; see `test_keras`, which runs this in a process of its own."""

import sys

import keras
import numpy as np

from tests.frameworks.checks import check

# The smallest images that each can take, or somewhat larger ones.
SIZES = {
    "MobileNetV2": 32,
    "EfficientNetB0": 32,
    "ResNet50": 32,
    "DenseNet121": 32,
    "ConvNeXtTiny": 32,
    "NASNetMobile": 32,
}


def main(name: str) -> None:
    """Checks a model with weights that no initializer would give, as those would hide faults."""
    size = SIZES[name]
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(
        weights=None, input_shape=(size, size, 3), include_top=False, pooling="avg"
    )
    rng = np.random.default_rng(0)
    trainable = [_noisy(rng, variable) for variable in model.trainable_variables]
    fixed = [_noisy(rng, variable) for variable in model.non_trainable_variables]
    images = rng.uniform(0, 1, (2, size, size, 3)).astype(np.float32)

    def apply(trainable, fixed, images):
        outputs, _ = model.stateless_call(trainable, fixed, images, training=False)
        return outputs

    check(apply, trainable, fixed, images, modes=("graph", "compiled"), tolerance=1e-3)


def _noisy(rng: np.random.Generator, variable: keras.Variable) -> np.ndarray:
    value = np.asarray(variable)
    if not np.issubdtype(value.dtype, np.floating):
        return value
    return (value * rng.uniform(0.8, 1.2, value.shape)).astype(value.dtype)


if __name__ == "__main__":
    main(sys.argv[1])
