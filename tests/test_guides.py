"""The examples of the guides run; those of one guide are one program."""

import os
import re
import subprocess
import sys

import pytest

from tests.helpers import ROOT

GUIDES = sorted((ROOT / "g3doc" / "guides").glob("*.md"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide(guide, tmp_path):
    text = guide.read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    for link in re.findall(r"\]\(([\w./]+)\)", text):
        assert (guide.parent / link).exists(), link
    if not program:
        return
    command = [sys.executable, "-c", program]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
