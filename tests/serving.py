"""A file server for the pages that tests open in a browser."""

import contextlib
import functools
import http.server
import os
import threading
from collections.abc import Iterator


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextlib.contextmanager
def served(folder: str | os.PathLike[str]) -> Iterator[str]:
    """The address of a server of the files in a folder, on this machine alone."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
