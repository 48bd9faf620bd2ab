"""A step of a diffusion model: a U-Net predicts the noise, and DDIM (Song et al.) removes some.

The step is deterministic. It leads from one of a thousand levels of noise to a lower one, which are
inputs, as is the noisy image.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model
from harnesses.models.unet import UNet

_LEVELS = 1000


class Denoiser(nn.Module):
    """Returns the noise in images, in the shape of the images, which have 3 channels."""

    features: tuple[int, ...]

    @nn.compact
    def __call__(self, images: jax.Array, levels: jax.Array) -> jax.Array:
        condition = nn.Dense(4 * self.features[0])(waves(levels, 2 * self.features[0]))
        condition = nn.Dense(4 * self.features[0])(nn.swish(condition))
        return UNet(self.features, channels=3)(images, condition)


def waves(positions: jax.Array, features: int) -> jax.Array:
    """Sines and cosines of positions, with periods from 2 pi to 20,000 pi.

    Args:
      positions: numbers of any dtype, [n].
      features: the number of features; even.

    Returns:
      float32 [n, features].
    """
    frequencies = np.exp(-np.log(10_000) * np.linspace(0, 1, features // 2)).astype(np.float32)
    angles = positions.astype(jnp.float32)[:, None] * frequencies
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def _kept() -> np.ndarray:
    """How much of the image is kept at each level of noise, as a fraction of the variance."""
    return np.cumprod(1 - np.linspace(1e-4, 0.02, _LEVELS)).astype(np.float32)


def _model(batch: int, pixels: int, **sizes: Any) -> Model:
    network = Denoiser(**sizes)

    def variables(key: jax.Array, inputs: dict) -> dict:
        return network.init(key, inputs["images"], inputs["level"])

    def apply(params: dict, inputs: dict) -> dict[str, jax.Array]:
        """Returns the "images" at the next level, and the "estimate" of those without noise."""
        images = inputs["images"]
        noise = network.apply(params, images, inputs["level"])
        now, after = (
            jnp.asarray(_kept())[inputs[name]][:, None, None, None]
            for name in ("level", "next_level")
        )
        estimate = jnp.clip((images - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now), -1, 1)
        images = jnp.sqrt(after) * estimate + jnp.sqrt(1 - after) * noise
        return {"images": images, "estimate": estimate}

    def draw(rng: np.random.Generator, batch: int, height: int, width: int) -> dict[str, Any]:
        """Returns "images", float32 [batch, height, width, 3], and the levels, int32 [batch]."""
        level = rng.integers(100, 400, size=batch, dtype=np.int32)
        return {
            "images": rng.normal(size=(batch, height, width, 3)).astype(np.float32),
            "level": level,
            "next_level": level - 50,
        }

    dimensions = {"batch": batch, "height": pixels, "width": pixels}
    return Model("diffusion", variables, apply, draw, dimensions, tolerance=1e-4)


MODELS = {
    "small": _model(2, 8, features=(4, 8)),
    "realistic": _model(1, 64, features=(64, 128, 256)),
}
