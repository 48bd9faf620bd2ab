"""The notebooks of g3doc/notebooks run from their first cell to their last."""

import pytest

from tools.notebooks import FOLDER, executed

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    cells = [cell for cell in executed(path).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 4
