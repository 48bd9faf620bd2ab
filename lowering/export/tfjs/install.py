"""Installs TF.js for Node, which exports are verified with."""

import sys

from lowering.export.tfjs import node

if __name__ == "__main__":
    try:
        node.install()
    except (ImportError, RuntimeError) as error:
        sys.exit(f"error: {error}")
    print(f"TF.js is installed in {node.directory()}")
