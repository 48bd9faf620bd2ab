"""Exports layers of Keras as if they were trained; see `test_keras`, which runs this in a process.

Their scales, biases and statistics are constants, which converters fold into one another.
"""

import keras
import numpy as np
from keras import layers

from lowering import export

RNG = np.random.default_rng(0)


def models() -> dict[str, keras.Model]:
    """Models of images with four channels, by name."""
    images = keras.Input((6, 6, 4))

    def norms(x):
        x = layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same")(x))
        x = layers.LayerNormalization()(layers.LeakyReLU()(x))
        x = layers.GroupNormalization(2)(layers.DepthwiseConv2D(3)(x))
        return layers.UnitNormalization()(layers.BatchNormalization(axis=1)(x))

    def convolutions(x):
        x = layers.PReLU(shared_axes=[1, 2])(layers.SeparableConv2D(4, 3)(x))
        x = layers.BatchNormalization()(layers.Conv2DTranspose(4, 3, strides=2)(x))
        return layers.Rescaling(2.0, -1.0)(layers.AveragePooling2D(2)(layers.ReLU(6.0, 0.1)(x)))

    def dense(x):
        x = layers.Dense(8, activation="elu")(layers.Flatten()(x))
        x = layers.BatchNormalization()(layers.Dense(8)(x))
        x = layers.BatchNormalization()(layers.Dense(8, use_bias=False)(x))
        x = layers.Multiply()([layers.Dense(4)(x), layers.Dense(4, activation="sigmoid")(x)])
        return layers.Softmax()(layers.Normalization(mean=[1, 2, 3, 4], variance=[4, 3, 2, 1])(x))

    def sequences(x):
        x = layers.Reshape((9, 16))(x)
        x = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
        x = layers.MultiHeadAttention(2, 4)(x, x) + layers.SpatialDropout1D(0.1)(x)
        return layers.GRU(4)(layers.BatchNormalization()(layers.Conv1D(8, 3, padding="causal")(x)))

    parts = norms, convolutions, dense, sequences
    return {part.__name__: keras.Model(images, part(images)) for part in parts}


def main() -> None:
    images = RNG.normal(size=(2, 6, 6, 4)).astype(np.float32)
    for name, model in models().items():
        # None is 0 or 1, as biases and scales are at first; variances stay positive.
        for weight in model.weights:
            if weight.dtype == "float32":
                weight.assign(np.abs(weight) + RNG.uniform(0.1, 0.5, weight.shape))
        variables = [[v.value for v in of] for of in _variables(model)]

        def predict(images, model=model, variables=variables):
            return model.stateless_call(*variables, images, training=False)[0]

        print(name, flush=True)
        export.to_onnx(predict, (images,))


def _variables(model):
    return model.trainable_variables, model.non_trainable_variables


if __name__ == "__main__":
    main()
