"""A program for a process of its own that shows that a saved model needs neither JAX nor lowering.

`run` prefixes the program with code that makes the import of these packages an error.
"""

import subprocess
import sys
import textwrap

_BLOCK = textwrap.dedent("""
    import sys

    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("jax", "jaxlib", "flax", "lowering"):
                raise ImportError(f"{name} is blocked")

    sys.meta_path.insert(0, Blocker())
    try:
        import jax
    except ImportError:
        pass
    else:
        raise AssertionError("JAX can be imported")
""")


def run(program: str, *arguments: object) -> None:
    """Runs a Python program where JAX cannot be imported.

    Raises:
      RuntimeError: if it fails, with what it printed to stderr.
    """
    command = [sys.executable, "-c", _BLOCK + textwrap.dedent(program), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
