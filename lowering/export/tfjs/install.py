"""Installs TF.js for Node, which exports are verified with."""

from lowering.export.tfjs.node import install

if __name__ == "__main__":
    install()
