"""Observes the processes that tests start; Python imports this at their beginning."""

import os
import sys

if os.environ.get("LOWERING_OBSERVED_IN"):
    sys.path.append(os.environ["LOWERING_CHECKOUT"])
    try:
        from tools.ci import observed

        observed.start(os.environ["LOWERING_OBSERVED_IN"])
    finally:
        sys.path.remove(os.environ["LOWERING_CHECKOUT"])
