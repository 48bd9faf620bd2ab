"""Builds the page of the demo.

    python -m tools.demo
    python -m http.server --directory g3doc/demo

The second command serves it.
"""

import argparse
import pathlib
import sys
from collections.abc import Sequence

from tools.demo import building, training

FOLDER = pathlib.Path(__file__).parents[2] / "g3doc" / "demo"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.demo",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=pathlib.Path, default=FOLDER, help="the page's folder")
    parser.add_argument("--steps", type=int, default=training.STEPS, help="steps of training")
    args = parser.parse_args(argv)
    building.write(args.output, args.steps)
    print(f"The page is in {args.output}. To open it in a browser, start a file server:")
    print(f"    python3 -m http.server --directory {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
