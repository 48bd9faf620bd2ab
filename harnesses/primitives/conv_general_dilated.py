"""Convolutions."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import ALL, COMPLEX, INTEGER, full_range, name, random, whole
from harnesses.axes import axes_of, every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses
from lowering.ops.dtypes import LOW_PRECISION

_NHWC = ("NHWC", "HWIO", "NHWC")


def _comparer(dtype, terms=64):
    """Returns a comparer that allows any order of summation.

    The tolerance is a few ulps of the largest partial sum.
    """
    if not jnp.issubdtype(dtype, np.inexact):
        return exact
    return close(ulps=4, atol=4 * terms * float(ml_dtypes.finfo(dtype).eps))


def _axes(numbers, padding="VALID", feature_group_count=1, batch_group_count=1, **_):
    """The rule for the axes of a convolution: all but those that hold groups or lose elements."""
    lhs, rhs, _ = numbers
    fixed = set()
    if feature_group_count > 1:
        fixed |= {"C", "I", "O"}
    if batch_group_count > 1:
        fixed |= {"N", "O"}
    if not isinstance(padding, str):
        spatial = [axis for axis in lhs if axis not in "NC"]
        fixed |= {axis for axis, edges in zip(spatial, padding, strict=True) if sum(edges) < 0}
    return axes_of(*([i for i, axis in enumerate(x) if axis not in fixed] for x in (lhs, rhs)))


def _harness(case, lhs, rhs, dtype=np.float32, rhs_dtype=None, strides=None, padding="VALID", **kw):
    kw.setdefault("dimension_numbers", _NHWC)
    strides = strides or (1,) * (len(lhs) - 2)

    def convolve(x, y):
        return lax.conv_general_dilated(x, y, strides, padding, **kw)

    args = random(lhs, dtype, -2, 2), random(rhs, rhs_dtype or dtype, -2, 2)
    comparer = _comparer(kw.get("preferred_element_type") or dtype)
    case = f"{case}_{name(dtype)}"
    symbolic = _axes(kw["dimension_numbers"], padding, **kw)
    return Harness("conv_general_dilated", case, convolve, args, comparer, symbolic=symbolic)


@harnesses
@symbolic(every_axis)
def dtypes():
    for dtype in ALL:
        yield _harness("dtype", (2, 6, 5, 4), (3, 2, 4, 6), dtype, padding="SAME")
        yield _harness(
            "dtype_everything",
            (2, 4, 5, 4),
            (3, 2, 2, 6),
            dtype,
            strides=(1, 2),
            padding=((2, -1), (0, 3)),
            lhs_dilation=(2, 1),
            rhs_dilation=(1, 2),
            feature_group_count=2,
        )
    for dtype in INTEGER:
        yield Harness(
            "conv_general_dilated",
            f"wrap_{name(dtype)}",
            lambda x, y: lax.conv_general_dilated(x, y, (1,), "VALID"),
            (full_range((2, 3, 6), dtype), full_range((4, 3, 2), dtype)),
        )
    for dtype in (*LOW_PRECISION, np.float32):
        # So many terms that accumulation in low precision would fail the comparison.
        yield Harness(
            "conv_general_dilated",
            f"long_{name(dtype)}",
            lambda x, y: lax.conv_general_dilated(x, y, (1, 1), "VALID", dimension_numbers=_NHWC),
            (random((1, 5, 5, 40), dtype, 0, 1), random((5, 5, 40, 2), dtype, 0, 1)),
            close(ulps=2 if dtype in LOW_PRECISION else 64),
        )


@harnesses
def element_types():
    for dtype, preferred in (
        (np.int8, np.int32),
        (np.int8, np.int16),
        (np.int8, np.float32),
        (np.int8, ml_dtypes.bfloat16),
        (np.uint8, np.int8),
        (np.uint32, np.int32),
        (np.int32, np.float32),
        (np.bool_, np.int32),
        (np.bool_, np.float32),
        (np.float16, np.float32),
        (ml_dtypes.bfloat16, np.float32),
        (np.float32, np.float64),
        (np.complex64, np.complex128),
    ):
        yield _harness(
            f"preferred={name(preferred)}",
            (2, 6, 5, 4),
            (3, 2, 4, 6),
            dtype,
            preferred_element_type=preferred,
        )
    for precision in (lax.Precision.HIGHEST, (lax.Precision.DEFAULT, lax.Precision.HIGH)):
        yield _harness(f"precision={precision}", (2, 6, 5, 4), (3, 2, 4, 6), precision=precision)


@harnesses
def windows():
    for strides, padding in itertools.product(
        ((1, 1), (2, 2), (1, 3), (4, 1)),
        (
            "SAME",
            "VALID",
            ((1, 2), (0, 0)),
            ((-1, 2), (0, 0)),
            ((-2, -1), (-1, -1)),
            ((7, 0), (4, 9)),
        ),
    ):
        # float64, because with padding of both signs JAX's float32 convolution reads memory beyond
        # the operand.
        dtype = np.float64 if padding == ((-1, 2), (0, 0)) else np.float32
        for kernel in ((3, 2), (1, 1)):
            yield _harness(
                f"kernel={kernel}_strides={strides}_padding={padding}",
                (2, 7, 6, 3),
                (*kernel, 3, 4),
                dtype,
                strides=strides,
                padding=padding,
            )
    for rhs_dilation, strides in itertools.product(((2, 2), (1, 3), (3, 1)), ((1, 1), (2, 1))):
        for padding in ("SAME", ((2, 0), (1, 4))):
            yield _harness(
                f"rhs_dilation={rhs_dilation}_strides={strides}_padding={padding}",
                (2, 9, 8, 3),
                (3, 2, 3, 4),
                rhs_dilation=rhs_dilation,
                strides=strides,
                padding=padding,
            )


@harnesses
def transposed():
    for lhs_dilation, padding in itertools.product(
        ((2, 2), (1, 3), (4, 2)),
        (
            ((0, 0), (0, 0)),
            ((1, 1), (1, 0)),
            ((2, 2), (1, 1)),
            ((4, 0), (0, 5)),
            ((-1, 1), (0, -2)),
            ((-9, 14), (1, 1)),
        ),
    ):
        yield _harness(
            f"lhs_dilation={lhs_dilation}_padding={padding}",
            (2, 4, 5, 3),
            (3, 2, 3, 4),
            lhs_dilation=lhs_dilation,
            padding=padding,
        )
    for params in (
        dict(strides=(2, 1)),
        dict(rhs_dilation=(2, 1)),
        dict(strides=(3, 2), rhs_dilation=(2, 2)),
    ):
        yield _harness(
            f"lhs_dilation=(2, 3)_{params}",
            (2, 4, 5, 3),
            (3, 2, 3, 4),
            lhs_dilation=(2, 3),
            padding=((1, 2), (2, 1)),
            **params,
        )
    for dtype, strides, padding, transpose_kernel in (
        (np.float32, (2, 2), "SAME", False),
        (np.float32, (2, 3), "VALID", True),
        (ml_dtypes.bfloat16, (2, 2), "SAME", True),
        (np.float64, (2, 2), "SAME", False),
    ):
        kernel = (3, 3, 4, 3) if transpose_kernel else (3, 3, 3, 4)
        yield Harness(
            "conv_general_dilated",
            f"conv_transpose_{strides}_{padding}_{transpose_kernel}_{name(dtype)}",
            lambda x, y, s=strides, p=padding, t=transpose_kernel: lax.conv_transpose(
                x, y, s, p, dimension_numbers=_NHWC, transpose_kernel=t
            ),
            (random((2, 4, 5, 3), dtype), random(kernel, dtype)),
            _comparer(dtype, 200),
            symbolic=("b, h, w, _",),
        )


@harnesses
def groups():
    for groups_, features, strides, rhs_dilation in (
        (2, 6, (1, 1), (1, 1)),
        (3, 6, (2, 1), (1, 1)),
        (2, 4, (1, 1), (2, 3)),
        (6, 6, (1, 1), (1, 1)),
        (6, 12, (2, 2), (1, 1)),
        (6, 12, (1, 2), (1, 1)),
        (6, 6, (1, 1), (2, 2)),
    ):
        for dtype in (np.float32, np.int32, np.complex64):
            yield _harness(
                f"feature_groups={groups_}_{features}_{strides}_{rhs_dilation}",
                (2, 7, 6, 6),
                (3, 2, 6 // groups_, features),
                dtype,
                strides=strides,
                rhs_dilation=rhs_dilation,
                padding=((1, 2), (0, 1)),
                feature_group_count=groups_,
            )
    for groups_, strides, lhs_dilation in (
        (2, (1, 1), (1, 1)),
        (3, (2, 1), (1, 1)),
        (6, (1, 1), (1, 1)),
        (2, (1, 1), (2, 1)),
    ):
        for dtype in (np.float32, np.int32):
            yield _harness(
                f"batch_groups={groups_}_{strides}_{lhs_dilation}",
                (6, 7, 6, 3),
                (3, 2, 3, 12),
                dtype,
                strides=strides,
                lhs_dilation=lhs_dilation,
                padding=((1, 2), (0, 1)),
                batch_group_count=groups_,
            )
    for groups_, lhs_dilation in ((2, (2, 2)), (6, (2, 1))):
        yield _harness(
            f"feature_groups={groups_}_lhs_dilation={lhs_dilation}",
            (2, 4, 3, 6),
            (3, 2, 6 // groups_, 6),
            lhs_dilation=lhs_dilation,
            padding=((1, 2), (0, 1)),
            feature_group_count=groups_,
        )


@harnesses
def layouts():
    for dtype in (np.float32, np.int16):
        for numbers, lhs, rhs in (
            (("NCHW", "OIHW", "NCHW"), (2, 3, 7, 6), (4, 3, 3, 2)),
            (("NHWC", "OIHW", "NCHW"), (2, 7, 6, 3), (4, 3, 3, 2)),
            (("HWNC", "HWOI", "CWNH"), (7, 6, 2, 3), (3, 2, 4, 3)),
            (("CHWN", "IHWO", "HWNC"), (3, 7, 6, 2), (3, 3, 2, 4)),
            (("NWHC", "WHIO", "NHWC"), (2, 6, 7, 3), (2, 3, 3, 4)),
            (("HCWN", "IWOH", "WCNH"), (7, 3, 6, 2), (3, 2, 4, 3)),
        ):
            for params in ({}, dict(lhs_dilation=(2, 1)), dict(feature_group_count=3)):
                grouped = list(rhs)
                if "feature_group_count" in params:
                    grouped[numbers[1].index("I")] = 1
                    grouped[numbers[1].index("O")] = 6
                yield _harness(
                    f"layout={numbers}_{params}",
                    lhs,
                    tuple(grouped),
                    dtype,
                    padding=((1, 2), (0, 1)),
                    dimension_numbers=numbers,
                    **params,
                )


@harnesses
def ranks():
    spatial, sizes, kernel = "HWDTU", (5, 4, 5, 3, 4), (3, 2, 1, 2, 3)
    for rank, dtype in itertools.product(range(6), (np.float32, np.int32, ml_dtypes.bfloat16)):
        axes = spatial[:rank]
        last = (f"N{axes}C", f"{axes}IO", f"N{axes}C")
        first = (f"NC{axes}", f"OI{axes}", f"NC{axes}")
        lhs, rhs = (2, *sizes[:rank], 4), (*kernel[:rank], 4, 6)
        yield _harness(f"rank={rank}", lhs, rhs, dtype, dimension_numbers=last)
        if rank == 5 and dtype != np.float32:
            continue
        yield _harness(
            f"rank={rank}_window",
            lhs,
            rhs,
            dtype,
            dimension_numbers=last,
            strides=(2, 1, 2, 1, 3)[:rank],
            padding=((1, 1), (0, 1), (2, 0), (1, 1), (1, 3))[:rank],
            rhs_dilation=(1, 2, 1, 1, 2)[:rank],
        )
        yield _harness(
            f"rank={rank}_groups",
            (2, 4, *sizes[:rank]),
            (6, 2, *kernel[:rank]),
            dtype,
            dimension_numbers=first,
            padding="SAME",
            feature_group_count=2,
        )
        if rank in (1, 3):
            yield _harness(
                f"rank={rank}_transposed",
                lhs,
                rhs,
                dtype,
                dimension_numbers=last,
                lhs_dilation=(2, 1, 3)[:rank],
                padding=((1, 2), (0, 1), (1, 1))[:rank],
            )
            depthwise = {"": dict(padding="SAME")}
            if rank == 1:
                for strides, dilation in (((2,), (1,)), ((3,), (2,))):
                    windows = dict(strides=strides, rhs_dilation=dilation, padding=((1, 2),))
                    depthwise[f"_{strides}_{dilation}"] = windows
            for case, params in depthwise.items():
                yield _harness(
                    f"rank={rank}_depthwise{case}",
                    lhs,
                    (*kernel[:rank], 1, 8),
                    dtype,
                    dimension_numbers=last,
                    feature_group_count=4,
                    **params,
                )
    yield _harness(
        "rank=3_SAME",
        (2, 5, 4, 6, 3),
        (3, 2, 2, 3, 4),
        dimension_numbers=("NHWDC", "HWDIO", "NHWDC"),
        padding="SAME",
        strides=(2, 1, 2),
    )


@harnesses
def few_positions():
    """Yields harnesses with more weights than a cache holds, and few positions of the window."""
    square = (1, 3, 3, 512), (3, 3, 512, 128)
    for lhs, rhs, params in (
        (*square, dict(padding="SAME")),
        (*square, dict(padding=((1, 2), (3, -1)), strides=(2, 1))),
        (*square, dict(padding=((2, 2), (2, 2)), rhs_dilation=(2, 1))),
        (*square, dict(padding=((2, 1), (1, 1)), lhs_dilation=(2, 1))),
        (*square, dict(padding="SAME", dtype=ml_dtypes.bfloat16)),
        ((2, 3, 3, 1024), (1, 1, 1024, 512), {}),
        ((2, 4, 3, 1024), (1, 1, 1024, 512), dict(strides=(2, 2))),
        ((2, 512, 5), (256, 512, 4), dict(dimension_numbers=("NCH", "OIH", "NCH"))),
        (
            (1, 2, 3, 2, 128),
            (2, 2, 2, 128, 512),
            dict(dimension_numbers=("NHWDC", "HWDIO", "NHWDC"), padding="SAME", strides=(1, 2, 1)),
        ),
    ):
        harness = _harness(f"few_positions_{lhs}_{rhs}_{params}", lhs, rhs, **params)
        dtype = params.get("dtype", np.float32)
        args = (whole(lhs, dtype), whole(rhs, dtype))
        yield dataclasses.replace(harness, args=args, comparer=exact)


@harnesses
def empty():
    for lhs, rhs, params in (
        ((0, 5, 6, 3), (3, 2, 3, 4), {}),
        ((2, 5, 6, 0), (3, 2, 0, 4), {}),
        ((2, 5, 6, 3), (3, 2, 3, 0), {}),
        ((2, 0, 6, 3), (3, 2, 3, 4), dict(padding=((2, 2), (0, 0)))),
        ((2, 0, 6, 3), (3, 2, 3, 4), dict(padding=((2, 2), (0, 0)), lhs_dilation=(2, 1))),
        ((2, 2, 6, 3), (3, 2, 3, 4), {}),
        ((2, 1, 1, 3), (1, 1, 3, 1), {}),
        ((2, 3, 3, 3), (3, 3, 3, 4), dict(padding=((5, -4), (0, 0)))),
        ((2, 3, 3, 3), (2, 2, 3, 4), dict(padding=((0, 0), (6, -3)))),
    ):
        for dtype in (np.float32, np.int32):
            yield _harness(f"{lhs}_{rhs}_{params}", lhs, rhs, dtype, **params)


@harnesses
@symbolic(every_axis)
def nonfinite():
    for dtype in (*LOW_PRECISION, np.float32, np.float64):
        image = np.ones((1, 5, 5, 1), dtype)
        image[0, 1, 1, 0], image[0, 3, 3, 0], image[0, 3, 1, 0] = np.nan, np.inf, -np.inf
        kernel = np.array([[1, 2], [0, 1]]).reshape(2, 2, 1, 1).astype(dtype)
        yield Harness(
            "conv_general_dilated",
            f"nonfinite_{name(dtype)}",
            lambda x, y: lax.conv_general_dilated(x, y, (1, 1), "SAME", dimension_numbers=_NHWC),
            (image, kernel),
            close(),
        )


@harnesses
def gradients():
    """Yields harnesses of the derivatives of convolutions, which are convolutions too."""
    for lhs, rhs, strides, padding, params in (
        ((2, 7, 8, 4), (3, 2, 4, 6), (1, 1), "SAME", {}),
        ((2, 7, 8, 4), (3, 2, 4, 6), (2, 2), "SAME", {}),
        ((2, 7, 8, 4), (3, 2, 4, 6), (2, 3), ((1, 2), (0, 0)), {}),
        ((2, 7, 8, 4), (1, 1, 4, 6), (2, 2), "VALID", {}),
        ((2, 7, 8, 4), (2, 1, 4, 6), (3, 2), "VALID", {}),
        ((2, 7, 8, 4), (3, 2, 4, 6), (1, 1), "VALID", dict(rhs_dilation=(2, 2))),
        ((2, 7, 8, 4), (3, 2, 2, 6), (2, 2), "SAME", dict(feature_group_count=2)),
        ((2, 7, 8, 4), (3, 2, 1, 8), (2, 2), "SAME", dict(feature_group_count=4)),
        ((4, 7, 8, 3), (3, 2, 3, 6), (1, 2), "SAME", dict(batch_group_count=2)),
        ((2, 4, 4, 3), (3, 2, 3, 6), (1, 1), ((1, 1), (0, 1)), dict(lhs_dilation=(2, 2))),
    ):
        for dtype in (np.float32, np.complex64, ml_dtypes.bfloat16):

            def convolve(x, y, s=strides, p=padding, params=params):
                return lax.conv_general_dilated(x, y, s, p, dimension_numbers=_NHWC, **params)

            specs = [jax.ShapeDtypeStruct(shape, dtype) for shape in (lhs, rhs)]
            out = jax.eval_shape(convolve, *specs).shape
            yield Harness(
                "conv_general_dilated",
                f"gradient_{lhs}_{rhs}_{strides}_{padding}_{params}_{name(dtype)}",
                lambda x, y, z, f=convolve: jax.vjp(f, x, y)[1](z),
                (random(lhs, dtype, -1, 1), random(rhs, dtype, -1, 1), random(out, dtype, -1, 1)),
                _comparer(dtype, 112 if dtype in COMPLEX else 64),
                symbolic=("_, _, _, c", "_, _, c, _")
                if "batch_group_count" in params
                else ("b, ...", None, "b, ..."),
            )
    for lhs, rhs, numbers, strides in (
        ((2, 9, 3), (3, 3, 5), ("NHC", "HIO", "NHC"), (2,)),
        ((2, 3, 9), (5, 3, 3), ("NCH", "OIH", "NCH"), (1,)),
        ((2, 3, 7, 6), (4, 3, 3, 2), ("NCHW", "OIHW", "NCHW"), (2, 1)),
        ((2, 4, 5, 4, 3), (2, 3, 2, 3, 4), ("NHWDC", "HWDIO", "NHWDC"), (2, 1, 1)),
    ):

        def strided(x, y, numbers=numbers, strides=strides):
            return lax.conv_general_dilated(x, y, strides, "SAME", dimension_numbers=numbers)

        specs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in (lhs, rhs)]
        out = jax.eval_shape(strided, *specs).shape
        yield Harness(
            "conv_general_dilated",
            f"gradient_{numbers}",
            lambda x, y, z, f=strided: jax.vjp(f, x, y)[1](z),
            tuple(random(shape, np.float32, -1, 1) for shape in (lhs, rhs, out)),
            _comparer(np.float32, 64),
            symbolic=("b, ...", None, "b, ..."),
        )
