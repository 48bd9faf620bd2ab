"""Runs the harnesses that misbehave by absl; its command line is that of `primitives_test`."""

from absl import app

from harnesses import primitives_test
from tests.harnesses.misbehaving import catalogue

if __name__ == "__main__":
    primitives_test.all_harnesses = catalogue
    app.run(primitives_test.main)
