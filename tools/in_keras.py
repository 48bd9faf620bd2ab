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


def _mlp(x: Any, hidden: int) -> Any:
    y = keras.activations.gelu(layers.Dense(hidden)(x), approximate=True)
    return layers.Dense(x.shape[-1])(y)


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
        x = x + _mlp(y, 1024)
    return keras.Model(tokens, layers.LayerNormalization(epsilon=1e-6)(x))


def vision_transformer() -> Any:
    """The vision transformer, whose class token and positions are weights of layers."""
    images = _images(224)
    x = layers.Reshape((196, 192))(layers.Conv2D(192, 16, 16)(images))
    first, places = layers.Embedding(1, 192), layers.Embedding(197, 192)
    token = first(keras.ops.zeros((1, 1), "int32"))
    x = keras.ops.concatenate([token, x], 1) + places(keras.ops.arange(197)[None])
    for _ in range(12):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(3, 64)(y, y)
        x = x + _mlp(layers.LayerNormalization(epsilon=1e-6)(x), 768)
    x = layers.LayerNormalization(epsilon=1e-6)(x[:, 0])
    return keras.Model(images, layers.Dense(1000)(x))


def vae() -> Any:
    """The variational autoencoder, with random numbers of Keras."""
    images = keras.Input((784,), name="images")
    x = layers.Dense(256, activation="relu")(images)
    mean, log_variance = layers.Dense(20)(x), layers.Dense(20)(x)
    z = Sampled()(mean, log_variance)
    z = layers.Dense(256, activation="relu")(z)
    return keras.Model(images, [layers.Dense(784)(z), mean, log_variance])


class Sampled(layers.Layer):
    """A normal sample of each mean and variance."""

    def __init__(self):
        super().__init__()
        self._seeds = keras.random.SeedGenerator(0)

    def call(self, mean: Any, log_variance: Any) -> Any:
        noise = keras.random.normal(keras.ops.shape(mean), seed=self._seeds)
        return mean + keras.ops.exp(0.5 * log_variance) * noise


class CachedAttention(layers.Layer):
    """Attention of new tokens to those in a cache, which they are written to."""

    def __init__(self, heads: int, features: int):
        super().__init__()
        self._heads, self._features = heads, features
        self._inward, self._outward = layers.Dense(3 * features), layers.Dense(features)

    def call(self, x: Any, keys: Any, values: Any, position: Any) -> Any:
        ops = keras.ops
        batch, length, features = x.shape
        parts = ops.reshape(self._inward(x), (batch, length, 3, self._heads, -1))
        query, key, value = ops.unstack(parts, axis=2)
        keys = ops.slice_update(keys, [0, position, 0, 0], key)
        values = ops.slice_update(values, [0, position, 0, 0], value)
        scores = ops.einsum("bqhd,bkhd->bhqk", query, keys) / (features // self._heads) ** 0.5
        seen = ops.arange(keys.shape[1]) <= position + ops.arange(length)[:, None]
        weights = ops.softmax(ops.where(seen, scores, -float("inf")))
        attended = ops.einsum("bhqk,bkhd->bqhd", weights, values)
        return self._outward(ops.reshape(attended, x.shape)), keys, values


class GPTStep(keras.Model):
    """A step of the GPT; its head is the table of tokens."""

    def __init__(self):
        super().__init__()
        self._tokens, self._places = layers.Embedding(1024, 384), layers.Embedding(256, 384)
        self._norms = [layers.LayerNormalization(epsilon=1e-6) for _ in range(13)]
        self._attentions = [CachedAttention(6, 384) for _ in range(6)]
        self._hidden = [layers.Dense(1536) for _ in range(6)]
        self._back = [layers.Dense(384) for _ in range(6)]

    def call(self, tokens: Any, caches: Any, position: Any) -> Any:
        ops = keras.ops
        x = self._tokens(tokens) + self._places(position + ops.arange(tokens.shape[1]))
        norms, updated = iter(self._norms), []
        for i, cache in enumerate(caches):
            y, *cache = self._attentions[i](next(norms)(x), *cache, position)
            x = x + y
            y = keras.activations.gelu(self._hidden[i](next(norms)(x)), approximate=True)
            x = x + self._back[i](y)
            updated.append(cache)
        table = ops.transpose(self._tokens.embeddings)
        return ops.matmul(next(norms)(x), table), updated


class Update(layers.Layer):
    """Updates edges, nodes or globals from what is collected for them."""

    def __init__(self):
        super().__init__()
        self._dense = layers.Dense(64, activation="relu")
        self._norm = layers.LayerNormalization(epsilon=1e-6)

    def call(self, *collected: Any) -> Any:
        return self._norm(self._dense(keras.ops.concatenate(collected, -1)))


class GraphNetwork(keras.Model):
    """The graph network, three rounds of messages with attention to edges."""

    def __init__(self):
        super().__init__()
        self._rounds = [(*(Update() for _ in range(3)), layers.Dense(1)) for _ in range(3)]

    def call(self, graph: Any) -> Any:
        ops = keras.ops
        nodes, edges, globals_ = graph["nodes"], graph["edges"], graph["globals"]
        senders, receivers = graph["senders"], graph["receivers"]
        graphs = ops.arange(globals_.shape[0])
        of_nodes, of_edges = (ops.repeat(graphs, graph[f"n_{kind}"]) for kind in ("node", "edge"))
        for update_edges, update_nodes, update_globals, score in self._rounds:
            sent, received = ops.take(nodes, senders, 0), ops.take(nodes, receivers, 0)
            edges = update_edges(edges, sent, received, ops.take(globals_, of_edges, 0))
            logits, count = score(edges), nodes.shape[0]
            highest = ops.take(ops.segment_max(logits, receivers, count), receivers, 0)
            weights = ops.exp(logits - highest)
            edges *= weights / ops.take(ops.segment_sum(weights, receivers, count), receivers, 0)
            sent, received = (ops.segment_sum(edges, to, count) for to in (senders, receivers))
            nodes = update_nodes(nodes, sent, received, ops.take(globals_, of_nodes, 0))
            of_graphs = (
                ops.segment_sum(x, to, globals_.shape[0])
                for x, to in ((nodes, of_nodes), (edges, of_edges))
            )
            globals_ = update_globals(*of_graphs, globals_)
        return {"nodes": nodes, "edges": edges, "globals": globals_}


# Those that exports are compared with.
MODELS: dict[str, Callable[[], Any]] = {"mobilenet_v2": mobilenet_v2, "resnet50": resnet50}
# Those that graphs are compared with, of the sizes that are realistic.
GRAPHS: dict[str, Callable[[], Any]] = {
    **MODELS,
    "cnn": cnn,
    "lstm": lstm,
    "transformer": transformer,
    "vision_transformer": vision_transformer,
    "vae": vae,
    "gpt_step": GPTStep,
    "graph_network": GraphNetwork,
}
