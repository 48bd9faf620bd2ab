"""Sweeps the harnesses that misbehave; its command line is that of `tools.sweep`.

Unlike the script that has them, it can be imported by workers of other machines.
"""

import sys

from tests.harnesses.misbehaving import catalogue
from tools import sweep

if __name__ == "__main__":
    sys.exit(sweep.main(catalogue=catalogue))
