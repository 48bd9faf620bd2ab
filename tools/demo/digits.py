"""The model of the demo: from a drawing to the probabilities of the ten digits.

The whole way is one JAX function, so that the page only has to draw strokes.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn

# The sides of a drawing and of scikit-learn's digits, in pixels, and the largest value of a digit.
DRAWING = 64
DIGIT = 8
LEVELS = 16

# What counts as ink, of a pixel between 0 and 1.
_INK = 0.25
# A drawing that is smaller is not enlarged further: it is a dot.
_SMALLEST = 12


class CNN(nn.Module):
    """Two convolutions and two dense layers: float32 [8, 8] in 0..16 to 10 logits."""

    @nn.compact
    def __call__(self, digit: jax.Array) -> jax.Array:
        x = (digit / LEVELS)[None, :, :, None]
        x = nn.relu(nn.Conv(24, (3, 3))(x))
        x = nn.relu(nn.Conv(48, (3, 3))(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(96)(x.reshape(-1)))
        return nn.Dense(10)(x)


_cnn = CNN()


def init(seed: int) -> dict:
    """Returns the parameters of an untrained model."""
    return _cnn.init(jax.random.key(seed), jnp.zeros((DIGIT, DIGIT)))


def logits(params: dict, digit: jax.Array) -> jax.Array:
    """The logits of the ten classes, float32 [10], for a digit as scikit-learn has it."""
    return _cnn.apply(params, digit)


def as_digit(drawing: jax.Array) -> jax.Array:
    """A drawing as one of scikit-learn's digits: centred, and as large as fits.

    Args:
      drawing: float32 [64, 64]; 0 is paper and 1 is ink.

    Returns:
      float32 [8, 8] in 0..16: how much ink is in each cell of the square around the ink.
    """
    is_ink = drawing > _INK
    top, bottom = _extent(jnp.any(is_ink, axis=1))
    left, right = _extent(jnp.any(is_ink, axis=0))
    side = jnp.maximum(jnp.maximum(bottom - top, right - left), _SMALLEST)
    rows = _shares((top + bottom - side) / 2, side)
    columns = _shares((left + right - side) / 2, side)
    return LEVELS * (rows @ drawing @ columns.T)


def predict(params: dict, drawing: jax.Array) -> dict[str, jax.Array]:
    """The probabilities of the ten digits for a drawing, and the digit that the model saw.

    Args:
      params: the parameters of the model.
      drawing: float32 [64, 64]; 0 is paper and 1 is ink.
    """
    digit = as_digit(drawing)
    return {"probabilities": nn.softmax(logits(params, digit)), "seen": digit}


def _extent(is_ink: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where the ink begins and ends, in pixels; anywhere if there is none."""
    pixels = jnp.arange(DRAWING, dtype=jnp.float32)
    first = jnp.min(jnp.where(is_ink, pixels, DRAWING))
    last = jnp.max(jnp.where(is_ink, pixels + 1, 0))
    return jnp.minimum(first, last), last


def _shares(start: jax.Array, side: jax.Array) -> jax.Array:
    """What share of each cell each pixel covers, float32 [8, 64].

    Args:
      start: where the first cell begins, in pixels.
      side: the size of all cells, in pixels.
    """
    size = side / DIGIT
    cells = start + size * jnp.arange(DIGIT, dtype=jnp.float32)[:, None]
    pixels = jnp.arange(DRAWING, dtype=jnp.float32)
    ends = jnp.minimum(cells + size, pixels + 1)
    return jnp.maximum(ends - jnp.maximum(cells, pixels), 0) / size
