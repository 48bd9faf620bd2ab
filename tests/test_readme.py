"""The examples of the README run."""

import os
import re
import subprocess
import sys

from tests.helpers import ROOT


def test_examples_of_the_readme_run(tmp_path):
    """They are one program, as each uses names of the former ones."""
    readme = (ROOT / "README.md").read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL))
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("shape=(4, 2), dtype=float32") == 4
    assert "(2, 2) (4, 2)" in result.stdout
