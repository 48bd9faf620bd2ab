"""Installs TF.js for Node, which exports are verified with."""

import argparse
import sys

from lowering.export.tfjs import node

if __name__ == "__main__":
    argparse.ArgumentParser(
        prog="python -m lowering.export.tfjs.install",
        description="Installs TF.js for Node by npm, unless it is installed. TF.js models are "
        f"verified with it. It is written to {node.directory()}.",
    ).parse_args()
    try:
        node.install()
    except (ImportError, RuntimeError) as error:
        sys.exit(f"error: {error}")
    print(f"TF.js is installed in {node.directory()}")
