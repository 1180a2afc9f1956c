"""Server: the viewer for this machine alone. It reads, and nothing but what it was started for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
import socketserver
import sys
import tempfile
import threading
import webbrowser
from collections import OrderedDict
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

from intervalnn.files.limits import MAX_GIB
from intervalnn.files.printable import printable
from intervalnn.view.levels import Levels
from intervalnn.view.page import SCRIPTS, STATIC, STYLE, page
from intervalnn.view.source import Entry, entries

__all__ = ["serving", "view"]

HOSTS = ("127.0.0.1", "localhost")
KEPT = 2  # predictions held in memory, so that going back and forth between two is quick
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LEADS = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>intervalnn</title>
<p><a href="{address}">Open the viewer</a></p>
"""
TEXT, BYTES, JSON = "text/plain; charset=utf-8", "application/octet-stream", "application/json"


def view(
    path: str | Path,
    *,
    port: int = 0,
    open_browser: bool = True,
    unit: str | None = None,
    dims: int | None = None,
    max_gib: float = MAX_GIB,
    say: Callable[[str], object] = click.echo,
) -> None:
    """Show a prediction in the browser, until Ctrl-C.

    Args:
        path: An npz file, one file of a NIfTI set, or a folder of these.
        port: Where to listen on 127.0.0.1; by default a free one is taken.
        open_browser: Whether to open the page, beside saying its address.
        unit: Of the point, such as ``"HU"``, where the files do not say or say otherwise.
        dims: 2 for images, 1 for signals, where the shape does not tell.
        max_gib: How much a file may unpack to, in GiB, unless it is as large itself.
        say: Is given the address.
    """
    with (
        contextlib.suppress(KeyboardInterrupt),
        serving(path, port=port, unit=unit, dims=dims, max_gib=max_gib) as address,
    ):
        say(f"Showing {printable(path)} at {address}\nOnly this machine can open it. Ctrl-C stops.")
        with _opened(address) if open_browser else contextlib.nullcontext():
            threading.Event().wait()


@contextlib.contextmanager
def _opened(address: str) -> Iterator[None]:
    """Open a page in the browser, by a file that leads there and that nobody else can read.

    All users of a machine see what programs are started with, and so would see the address and its token.
    """
    with tempfile.TemporaryDirectory(prefix="intervalnn-") as folder:  # for its owner alone
        file = Path(folder) / "open.html"
        file.touch(mode=0o600)
        file.write_text(LEADS.format(address=address), encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield


@contextlib.contextmanager
def serving(
    path: str | Path,
    *,
    port: int = 0,
    unit: str | None = None,
    dims: int | None = None,
    max_gib: float = MAX_GIB,
) -> Iterator[str]:
    """Serve the viewer in the background, and give its address.

    A single prediction is read first, so that what is wrong with it is raised here.
    """
    shelf = Shelf(entries(path, unit=unit, dims=dims, max_gib=max_gib))
    if len(shelf.entries) == 1:
        shelf.levels(0)
    with _Server(port, shelf) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/{server.token}/"
        finally:
            server.shutdown()
            thread.join()


class Shelf:
    """The predictions that can be chosen, of which the last few are held in memory."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self._held: OrderedDict[int, Levels] = OrderedDict()
        self._lock = threading.Lock()

    def levels(self, number: int) -> Levels:
        """Return one prediction, read if need be."""
        with self._lock:
            if number not in self._held:
                self._held[number] = Levels(self.entries[number].load())
            self._held.move_to_end(number)
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
            return self._held[number]


class _Server(ThreadingHTTPServer):
    allow_reuse_address = os.name == "posix"  # on Windows it would let another program listen at the same port

    def __init__(self, port: int, shelf: Shelf) -> None:
        self.shelf = shelf
        self.connected: set[socket.socket] = set()
        self.token = secrets.token_urlsafe(24)
        self.page = page([entry.name for entry in shelf.entries]).encode(errors="backslashreplace")
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:  # the latter where it is no port at all
            raise OSError(f"port {port} of 127.0.0.1 cannot be used ({error}); choose another, or 0 for any") from error

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own looks up a name, which takes long without network

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connected.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connected.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for request in list(self.connected):  # else a page that is open would be answered further
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # the browser may go away at any time
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD at fixed addresses below the token, for this machine's own names only."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the end of each answer waits for the browser
    timeout = 60.0

    def do_GET(self) -> None:
        self._answer(*self._route())

    def do_HEAD(self) -> None:
        self._answer(*self._route())

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):  # any other method
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        self.close_connection = True  # what was sent along is not read
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"the viewer only reads: GET and HEAD", Allow="GET, HEAD")

    def _route(self) -> tuple[HTTPStatus, str, bytes]:
        host = re.sub(r":\d+$", "", self.headers.get("Host", ""))
        if host not in HOSTS:  # a page elsewhere whose name was made to lead here
            return HTTPStatus.FORBIDDEN, TEXT, b"this host name is not served"
        token, _, rest = self.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return HTTPStatus.FORBIDDEN, TEXT, b"the address must have the token of this viewer"
        if rest == "":
            return HTTPStatus.OK, "text/html; charset=utf-8", self.server.page
        if rest in (f"static/{STYLE}", *(f"static/{name}" for name in SCRIPTS)):
            kind = "text/css" if rest.endswith(".css") else "text/javascript"
            return HTTPStatus.OK, f"{kind}; charset=utf-8", (STATIC / rest.removeprefix("static/")).read_bytes()
        match = re.fullmatch(r"(\d{1,6})/(meta|counts|slice/(\d{1,9}))", rest, re.ASCII)
        if match and int(match[1]) < len(self.server.shelf.entries):
            return self._data(int(match[1]), match[2], int(match[3] or 0))
        return HTTPStatus.NOT_FOUND, TEXT, b"there is nothing at this address"

    def _data(self, number: int, what: str, i: int) -> tuple[HTTPStatus, str, bytes]:
        try:
            return self._levels(number, what, i)
        except Exception as error:  # whatever odd numbers do to a library; the page says so, for the file is the user's
            told = (
                str(error)
                if isinstance(error, ValueError | OSError | ImportError)
                else f"it cannot be shown: {error!r}"
            )
            return HTTPStatus.UNPROCESSABLE_ENTITY, TEXT, printable(told).encode()

    def _levels(self, number: int, what: str, i: int) -> tuple[HTTPStatus, str, bytes]:
        levels = self.server.shelf.levels(number)
        if what == "meta":
            meta = levels.meta(self.server.shelf.entries[number].name)
            return HTTPStatus.OK, JSON, json.dumps(meta, allow_nan=False).encode()
        if what == "counts":
            return HTTPStatus.OK, BYTES, levels.counts()
        if i < levels.record.slices:
            return HTTPStatus.OK, BYTES, levels.packed(i)
        return HTTPStatus.NOT_FOUND, TEXT, b"there is no such slice"

    def _answer(self, status: HTTPStatus, kind: str, body: bytes, **extra: str) -> None:
        self.send_response(status)
        for name, value in (HEADERS | extra | {"Content-Type": kind, "Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "intervalnn"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the address only."""
