"""A vision transformer, after Dosovitskiy et al., with learned positions and a class token."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model
from harnesses.models.transformer import EncoderLayer


class VisionTransformer(nn.Module):
    """Patches, a transformer encoder, and a classifier of the class token; returns logits."""

    patch: int
    layers: int
    features: int
    heads: int
    classes: int

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        size = (self.patch, self.patch)
        x = nn.Conv(self.features, size, strides=size, padding="VALID")(images)
        x = x.reshape(x.shape[0], -1, self.features)
        normal = nn.initializers.normal()
        first = self.param("class_embedding", normal, (1, 1, self.features))
        x = jnp.concatenate([jnp.tile(first, (x.shape[0], 1, 1)), x], axis=1)
        x += self.param("position_embedding", normal, (1, *x.shape[1:]))
        for _ in range(self.layers):
            x = EncoderLayer(self.heads, 4 * self.features)(x)
        return nn.Dense(self.classes)(nn.LayerNorm()(x[:, 0]))


def _draw(rng: np.random.Generator, batch: int, height: int, width: int) -> np.ndarray:
    """Returns images, float32 [batch, height, width, 3]."""
    return rng.normal(size=(batch, height, width, 3)).astype(np.float32)


def _model(batch: int, pixels: int, **sizes: int) -> Model:
    network = VisionTransformer(**sizes)
    dimensions = {"batch": batch, "height": pixels, "width": pixels}
    return Model(
        "vision_transformer", network.init, network.apply, _draw, dimensions, tolerance=1e-4
    )


MODELS = {
    "small": _model(2, 16, patch=8, layers=2, features=16, heads=2, classes=10),
    # The sizes of ViT-Ti/16.
    "realistic": _model(1, 224, patch=16, layers=12, features=192, heads=3, classes=1000),
}
