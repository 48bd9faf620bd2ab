"""A variational autoencoder of images; the converted function draws the random noise."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class VAE(nn.Module):
    """Returns logits of the reconstruction, and mean and log-variance of the latents."""

    hidden: int
    latents: int

    @nn.compact
    def __call__(self, images: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        x = nn.relu(nn.Dense(self.hidden)(images))
        mean, log_variance = nn.Dense(self.latents)(x), nn.Dense(self.latents)(x)
        noise = jax.random.normal(key, mean.shape)
        z = mean + jnp.exp(0.5 * log_variance) * noise
        z = nn.relu(nn.Dense(self.hidden)(z))
        return nn.Dense(images.shape[-1])(z), mean, log_variance


def _model(pixels: int, **sizes: int) -> Model:
    network = VAE(**sizes)

    def variables(key: jax.Array, inputs: dict) -> dict:
        return network.init(key, inputs["images"], jax.random.key(0))

    def apply(params: dict, inputs: dict) -> tuple[jax.Array, ...]:
        key = jax.random.wrap_key_data(inputs["key"], impl="threefry2x32")
        return network.apply(params, inputs["images"], key)

    def draw(rng: np.random.Generator, batch: int) -> dict[str, np.ndarray]:
        """Returns "images", float32 [batch, pixels], and "key", data of a PRNG key, uint32 [2]."""
        return {
            "images": rng.uniform(size=(batch, pixels)).astype(np.float32),
            "key": rng.integers(2**32, size=2, dtype=np.uint32),
        }

    return Model("vae", variables, apply, draw, {"batch": 2})


MODELS = {
    "small": _model(8 * 8, hidden=16, latents=3),
    "realistic": _model(28 * 28, hidden=256, latents=20),
}
