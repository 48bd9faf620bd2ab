"""PIX: changes of images."""

import jax
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

IMAGES = np.random.default_rng(0).uniform(size=(2, 12, 10, 3)).astype(np.float32)


@program
def colors():
    pix = pytest.importorskip("dm_pix")

    def change(images):
        images = pix.adjust_hue(images, 0.2)
        images = pix.adjust_saturation(images, 1.3)
        images = pix.adjust_gamma(images, 1.5)
        return pix.rgb_to_hsv(images), pix.gaussian_blur(images, 1.0, 3), pix.ssim(images, IMAGES)

    return Program(change, (IMAGES,))


@program
def augmentation():
    pix = pytest.importorskip("dm_pix")

    def augment(images, words):
        keys = jax.random.split(jax.random.wrap_key_data(words), 4)
        images = pix.random_flip_left_right(keys[0], images)
        images = pix.random_brightness(keys[1], images, 0.3)
        images = pix.random_crop(keys[2], images, (2, 8, 8, 3))
        return jax.vmap(lambda image: pix.rotate(image, 0.3, mode="constant"))(images)

    return Program(augment, (IMAGES, np.uint32([0, 5])))


@program
def elastic_deformation():
    pix = pytest.importorskip("dm_pix")

    def deform(image, words):
        key = jax.random.wrap_key_data(words)
        return pix.elastic_deformation(key, image, alpha=5.0, sigma=2.0)

    return Program(deform, (IMAGES[0], np.uint32([0, 7])))
