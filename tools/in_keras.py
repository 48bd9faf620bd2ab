"""Models of `harnesses.models` as their authors would have written them in Keras.

They have the same layers and sizes. Their weights are random, as only speed and size are compared.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
from keras import layers

# Of each stage of MobileNetV2: expansion, features, blocks, and stride of the first block.
_INVERTED = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _conv(x: Any, features: int, kernel: int = 1, stride: int = 1) -> Any:
    """A convolution with its normalization."""
    x = layers.Conv2D(features, kernel, stride, padding="same", use_bias=False)(x)
    return layers.BatchNormalization(epsilon=1e-3)(x)


def _images(pixels: int) -> Any:
    return keras.Input((pixels, pixels, 3), batch_size=1, name="images")


def _classified(images: Any, x: Any) -> Any:
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(images, layers.Dense(1000)(x))
    # As after a training, no bias is zero, which converters would leave out.
    rng = np.random.default_rng(0)
    for weight in model.weights:
        if len(weight.shape) == 1:
            weight.assign(weight + rng.uniform(0.01, 0.1, weight.shape))
    return model


def mobilenet_v2(pixels: int = 224) -> Any:
    """MobileNetV2."""
    images = _images(pixels)
    x = layers.ReLU(6)(_conv(images, 32, 3, 2))
    for expansion, features, blocks, first_stride in _INVERTED:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y = x
            if expansion > 1:
                y = layers.ReLU(6)(_conv(y, expansion * x.shape[-1]))
            y = layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(y)
            y = layers.ReLU(6)(layers.BatchNormalization(epsilon=1e-3)(y))
            y = _conv(y, features)
            x = layers.Add()([x, y]) if stride == 1 and features == x.shape[-1] else y
    return _classified(images, layers.ReLU(6)(_conv(x, 1280)))


def resnet50(pixels: int = 224) -> Any:
    """ResNet-50."""
    images = _images(pixels)
    x = layers.ZeroPadding2D(3)(images)
    x = layers.Conv2D(64, 7, 2, use_bias=False)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        features = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            y = layers.ReLU()(_conv(x, features))
            y = layers.ReLU()(_conv(y, features, 3, stride))
            y = _conv(y, 4 * features)
            shortcut = _conv(x, 4 * features, 1, stride) if block == 0 else x
            x = layers.ReLU()(layers.Add()([shortcut, y]))
    return _classified(images, x)


def cnn() -> Any:
    """The small convolutional classifier."""
    images = keras.Input((28, 28, 1), name="images")
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(images)
    x = layers.AveragePooling2D(2)(x)
    x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    x = layers.Flatten()(layers.MaxPooling2D(2)(x))
    x = layers.Dense(256, activation="relu")(x)
    return keras.Model(images, layers.Dense(10, activation="log_softmax")(x))


def lstm() -> Any:
    """The LSTM: all its states, and logits of the last one."""
    sequences = keras.Input((40, 128), name="sequences")
    states = layers.LSTM(256, return_sequences=True)(sequences)
    return keras.Model(sequences, [states, layers.Dense(10)(states[:, -1])])


def transformer() -> Any:
    """The transformer encoder on padded sentences."""
    tokens = keras.Input((64,), dtype="int32", name="tokens")
    present = keras.ops.not_equal(tokens, 0)
    mask = keras.ops.logical_and(present[:, :, None], present[:, None, :])
    places = layers.Embedding(128, 256)(keras.ops.arange(64)[None])
    x = layers.Embedding(1000, 256)(tokens) + places
    for _ in range(6):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(8, 32)(y, y, attention_mask=mask)
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        y = keras.activations.gelu(layers.Dense(1024)(y), approximate=True)
        x = x + layers.Dense(256)(y)
    return keras.Model(tokens, layers.LayerNormalization(epsilon=1e-6)(x))


# Those that exports are compared with.
MODELS: dict[str, Callable[[], Any]] = {"mobilenet_v2": mobilenet_v2, "resnet50": resnet50}
# Those that graphs are compared with, of the sizes that are realistic.
GRAPHS: dict[str, Callable[[], Any]] = {
    **MODELS,
    "cnn": cnn,
    "lstm": lstm,
    "transformer": transformer,
}
