"""The types of options that are names of files."""

import argparse
import os
import pathlib


def name(text: str) -> str:
    """The name of a file. As a path, an empty one would be the current directory."""
    if not text:
        raise argparse.ArgumentTypeError("the name of the file is empty")
    # Shells do not expand it behind `--output=`.
    return os.path.expanduser(text)


def existing(text: str) -> pathlib.Path:
    """The path of a file that a command reads."""
    return pathlib.Path(name(text))


def new(text: str) -> pathlib.Path:
    """The path of a file that a command writes."""
    if text == "-":
        raise argparse.ArgumentTypeError("nothing is written to the standard output; name a file")
    return pathlib.Path(name(text))


def of_arrays(text: str) -> pathlib.Path:
    """The path of a file of arrays that a command writes."""
    path = new(text)
    if path.suffix not in (".npz", ".npy"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither an .npz file nor, for one output, an .npy file"
        )
    return path
