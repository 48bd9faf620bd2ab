"""Results of cells that no sweep has run."""

from harnesses.cell import Verdict
from harnesses.database import Row
from harnesses.variants import PLAIN


def row(harness: str, verdict: Verdict, **values) -> Row:
    fields = {name: "" for name in Row.__dataclass_fields__}
    fields |= {
        "variant": PLAIN,
        "harness": harness,
        "primitive": "sin",
        "error": 0.0,
        "seconds": 0.1,
        "ulps": None,
    }
    return Row(**{**fields, "verdict": str(verdict), **values})
