"""What processor this is: runtimes have other kernels where it has AVX-512."""

import functools
import pathlib


@functools.cache
def has_avx512() -> bool:
    """Whether the processor has AVX-512, as far as Linux says."""
    info = pathlib.Path("/proc/cpuinfo")
    return info.exists() and "avx512f" in info.read_text().split()
