"""Settings that frameworks read when they are imported."""

import os

# What equinox and its family do about an error in a program. By default they call back into Python,
# which XLA cannot compile in a TensorFlow graph, and which no SavedModel can hold.
os.environ.setdefault("EQX_ON_ERROR", "nan")
