"""A variational autoencoder of 28x28 images; the converted function draws the random noise."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model

_PIXELS = 28 * 28


class VAE(nn.Module):
    """Returns logits of the reconstruction, and mean and log-variance of the latents."""

    hidden: int = 256
    latents: int = 20

    @nn.compact
    def __call__(self, images: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        x = nn.relu(nn.Dense(self.hidden)(images))
        mean, log_variance = nn.Dense(self.latents)(x), nn.Dense(self.latents)(x)
        noise = jax.random.normal(key, mean.shape)
        z = mean + jnp.exp(0.5 * log_variance) * noise
        z = nn.relu(nn.Dense(self.hidden)(z))
        return nn.Dense(images.shape[-1])(z), mean, log_variance


_vae = VAE()


def _apply(params: dict, inputs: dict) -> tuple[jax.Array, ...]:
    key = jax.random.wrap_key_data(inputs["key"], impl="threefry2x32")
    return _vae.apply(params, inputs["images"], key)


def init(seed: int) -> dict:
    """Returns the variables."""
    images = make_inputs(0, 1)["images"]
    return random_parameters(_vae.init, images, jax.random.key(0), seed=seed)


def make_inputs(seed: int, batch: int) -> dict[str, np.ndarray]:
    """Returns "images", float32 [batch, 784], and "key", the data of a PRNG key, uint32 [2]."""
    rng = np.random.default_rng(seed)
    return {
        "images": rng.uniform(size=(batch, _PIXELS)).astype(np.float32),
        "key": rng.integers(2**32, size=2, dtype=np.uint32),
    }


MODEL = Model("vae", init, _apply, make_inputs)
