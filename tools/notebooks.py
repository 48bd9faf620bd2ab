"""Runs the notebooks in g3doc/notebooks/ and stores what they print, for the site and for readers.

    python -m tools.notebooks
    python -m tools.notebooks debugging sampler

Needs the extra `notebooks`. `tests/test_notebooks.py` runs the same notebooks and stores nothing.
"""

import argparse
import os
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any
from unittest import mock

import nbformat
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "g3doc" / "notebooks"
_SECONDS = 600


def executed(path: pathlib.Path) -> Any:
    """A notebook with the outputs of a run in a process and a directory of its own.

    Raises:
      nbclient.exceptions.CellExecutionError: if a cell raises an exception.
    """
    notebook = nbformat.read(path, as_version=4)
    found = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    quiet = {"PYTHONPATH": os.pathsep.join(found), "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, quiet):
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(
            notebook,
            timeout=_SECONDS,
            kernel_name="python3",
            resources=resources,
            record_timing=False,
        )
        return client.execute()


def _store(path: pathlib.Path) -> None:
    notebook = executed(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # Log lines and warnings differ from machine to machine.
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    # Which Python ran it is no property of the notebook.
    notebook.metadata["language_info"] = {"name": "python"}
    nbformat.write(notebook, path)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line."""
    names = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    parser = argparse.ArgumentParser(
        prog="python -m tools.notebooks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("notebook", nargs="*", metavar="NAME", help=f"among {', '.join(names)}")
    args = parser.parse_args(argv)
    for name in args.notebook or names:
        if name not in names:
            parser.error(f"there is no notebook {name}; there are {', '.join(names)}")
        print(f"{name} ...", flush=True)
        _store(FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    main()
