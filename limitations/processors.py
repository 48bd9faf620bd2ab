"""What processor this is: runtimes have other kernels where it has AVX-512."""

import functools
import pathlib


def has_avx512() -> bool:
    """Whether the processor has AVX-512, as far as Linux says."""
    return "avx512f" in _flags()


def has_avx512_fp16() -> bool:
    """Whether the processor computes in float16 with AVX-512, as far as Linux says."""
    return "avx512_fp16" in _flags()


@functools.cache
def _flags() -> frozenset[str]:
    info = pathlib.Path("/proc/cpuinfo")
    return frozenset(info.read_text().split() if info.exists() else ())
