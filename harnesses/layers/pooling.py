"""Pooling."""

from collections.abc import Iterator

import flax.linen as nn
import tensorflow as tf

from harnesses.layers.layer import Layer, normal

_X = normal(2, 8, 8, 4)
_SEQUENCES = normal(2, 8, 4)


def layers() -> Iterator[Layer]:
    """Maxima and means over windows."""
    pools = {"max": (nn.max_pool, tf.nn.max_pool), "average": (nn.avg_pool, tf.nn.avg_pool)}
    for name, (pool, by_hand) in pools.items():
        for symbolic in (False, True):
            yield Layer(
                f"{name} pool{', any batch' if symbolic else ''}",
                lambda x, pool=pool: pool(x, (2, 2), (2, 2)),
                lambda x, pool=by_hand: pool(x, 2, 2, "VALID"),
                (_X,),
                symbolic,
            )
        yield Layer(
            f"{name} pool of sequences",
            lambda x, pool=pool: pool(x, (2,), (2,)),
            lambda x, pool=by_hand: tf.squeeze(pool(x[:, None], (1, 2), (1, 2), "VALID"), 1),
            (_SEQUENCES,),
        )
    yield Layer(
        "max pool, SAME",
        lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"),
        lambda x: tf.nn.max_pool(x, 3, 2, "SAME"),
        (_X,),
    )
    yield Layer(
        "average pool, SAME",
        lambda x: nn.avg_pool(x, (3, 3), (2, 2), "SAME", count_include_pad=False),
        lambda x: tf.nn.avg_pool(x, 3, 2, "SAME"),
        (_X,),
    )
    yield Layer(
        "global average pool", lambda x: x.mean((1, 2)), lambda x: tf.reduce_mean(x, (1, 2)), (_X,)
    )
    yield Layer(
        "global max pool", lambda x: x.max((1, 2)), lambda x: tf.reduce_max(x, (1, 2)), (_X,)
    )
