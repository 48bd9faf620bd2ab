"""Limitations of narrow dtypes as arguments and results of a program."""

from limitations.limitation import Limitation


def _crosses_boundary(case, params):
    return case.startswith(("argument_", "result_"))


_CANNOT_CONVERT = "lowering error: .*TensorFlow cannot convert (an argument|a result)"

LIMITATIONS = {
    "jit": [
        Limitation(
            "TensorFlow has no such dtype, so that it can only occur inside of a program.",
            error="TF error: TypeError: TensorFlow has no dtype",
            dtypes={"float8_e3m4", "float8_e4m3", "float8_e8m0fnu"},
            modes={"eager", "graph", "compiled"},
            variants=None,
            where=_crosses_boundary,
        ),
        Limitation(
            "TensorFlow's Cast has no kernel for this dtype, nor has any op that could stand in.",
            error=_CANNOT_CONVERT,
            dtypes={
                "float8_e4m3b11fnuz",
                "float8_e4m3fnuz",
                "float8_e5m2fnuz",
                "float4_e2m1fn",
                "int2",
                "uint2",
            },
            modes={"graph"},
            variants=None,
            where=_crosses_boundary,
        ),
        Limitation(
            "TensorFlow's compiler to XLA takes no values of this dtype.",
            error=_CANNOT_CONVERT,
            dtypes={"float4_e2m1fn", "int2", "uint2"},
            modes={"compiled"},
            variants=None,
            where=_crosses_boundary,
        ),
        Limitation(
            "XLA packs two of these into a byte and TensorFlow does not, so that where a compiled "
            "function begins or ends, even the identity returns other numbers.",
            error=_CANNOT_CONVERT,
            dtypes={"int4", "uint4"},
            modes={"compiled"},
            variants=None,
            where=_crosses_boundary,
        ),
    ],
}
