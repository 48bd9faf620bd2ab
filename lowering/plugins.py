"""Rules that installed packages bring for primitives of their own.

A package names the module that registers them as an entry point of the group `lowering.rules`. The
modules are imported at the first conversion, so that importing `lowering` imports none of them.
"""

import importlib.metadata
import threading
import warnings

from lowering import registry

GROUP = "lowering.rules"

_lock = threading.RLock()
_loaded = False


def load() -> None:
    """Imports the modules of all installed packages that bring rules, once.

    Of a module that cannot be imported, no rule is registered, and a warning names its package.
    """
    global _loaded
    with _lock:  # A thread that comes later waits for the rules; a module may convert something.
        if _loaded:
            return
        _loaded = True
        for entry_point in importlib.metadata.entry_points(group=GROUP):
            try:
                with registry.all_or_nothing():
                    entry_point.load()
            except Exception as error:  # The code of others may raise anything.
                package = entry_point.dist.name if entry_point.dist else "an unknown package"
                first_line = str(error).strip().split("\n")[0]
                warnings.warn(
                    f"the rules that {package} brings for lowering (entry point "
                    f"{entry_point.name} = {entry_point.value}) are left out, because they could "
                    f"not be loaded: {type(error).__name__}: {first_line}",
                    RuntimeWarning,
                    stacklevel=2,
                )
