"""The server: what it answers, and all that it refuses."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pytest

from intervalnn.view import serving, view
from intervalnn.view.levels import Levels
from intervalnn.view.page import SCRIPTS, STATIC
from view.made import ROWS, SLICES, signals, volume


class Client:
    """Asks a viewer that runs, by its token unless told otherwise."""

    def __init__(self, address: str) -> None:
        self.port = int(address.split(":")[2].split("/")[0])
        self.token = address.split("/")[3]

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        token: str | None = None,
        host: str | None = None,
        body: bytes | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {} if host is None else {"Host": host}
        connection.request(method, f"/{self.token if token is None else token}/{path}", body, headers)
        answer = connection.getresponse()
        read = answer.status, dict(answer.getheaders()), answer.read()
        connection.close()
        return read


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    volume(folder / "a.npz")
    signals(folder / "b.npz")
    (folder / "c.npz").write_bytes(b"no zip file")
    (folder / "secret.txt").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with serving(folder) as address:
        yield Client(address)


def test_the_page_its_files_and_the_slices_are_served(client: Client) -> None:
    status, headers, page = client.ask("")
    assert status == 200 and headers["Content-Type"].startswith("text/html") and b'["a", "b", "c"]' in page

    for name in SCRIPTS:
        assert client.ask(f"static/{name}")[2] == (STATIC / name).read_bytes()
        assert f'src="static/{name}"'.encode() in page
    meta = json.loads(client.ask("0/meta")[2])
    assert (meta["slices"], meta["rows"], meta["unit"], meta["kind"]) == (SLICES, ROWS, "HU", "image")
    assert len(client.ask(f"0/slice/{SLICES - 1}")[2]) == 40 + 2 * ROWS * meta["columns"] * len(meta["channels"])
    counts = np.frombuffer(client.ask("0/counts")[2], dtype="<u4")
    assert counts.sum() == SLICES * ROWS * meta["columns"]
    assert json.loads(client.ask("1/meta")[2])["kind"] == "signal"


def test_every_answer_shuts_the_page_off_from_elsewhere(client: Client) -> None:
    for path in ("", "static/page.css", "0/meta", "nothing"):
        headers = client.ask(path)[1]
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["Referrer-Policy"] == "no-referrer" and headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Server"] == "intervalnn"


@pytest.mark.rotating
@pytest.mark.parametrize("token", ["", "x", "wrong" * 7, "%00"])
def test_a_wrong_token_is_refused(client: Client, token: str) -> None:
    for path in ("", "0/slice/0", "static/page.css"):
        status, _, body = client.ask(path, token=token)
        assert status == 403 and b"token" in body


@pytest.mark.rotating
@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "static/../page.py",
        "static/..%2fpage.py",
        "static/%2e%2e/page.py",
        "static//etc/passwd",
        "static/icon.svg",
        "secret.txt",
        "0/../secret.txt",
        "0/slice/../../secret.txt",
        "0/slice/-1",
        "0/slice/999999999",
        "0/slice/9999999999",
        "7/meta",
        "0/meta?x=1",
        "a/meta",
        "0",
    ],
)
def test_other_addresses_lead_nowhere(client: Client, path: str) -> None:
    status, _, body = client.ask(path)

    assert status == 404 and b"secret" not in body and b"root:" not in body


@pytest.mark.rotating
@pytest.mark.parametrize("path", ["ä", "{token}/0/slice/١", "{token}/../{token}/"])
def test_bytes_that_no_browser_sends_are_refused(client: Client, path: str) -> None:
    line = f"GET /{path.format(token=client.token)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=10) as raw:
        raw.sendall(line.encode())
        answer = raw.makefile("rb").readline()

    assert answer.split()[1] in (b"403", b"404")


@pytest.mark.rotating
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
def test_nothing_can_be_written(client: Client, method: str) -> None:
    status, headers, body = client.ask("0/slice/0", method=method, body=b"GET / HTTP/1.1\r\n\r\n")

    assert status == 405 and headers["Allow"] == "GET, HEAD" and b"only reads" in body


def test_head_gives_no_body(client: Client) -> None:
    status, headers, body = client.ask("0/slice/0", method="HEAD")

    assert status == 200 and int(headers["Content-Length"]) > 1000 and body == b""


@pytest.mark.rotating
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1]", "0.0.0.0"])
def test_foreign_host_names_are_refused(client: Client, host: str) -> None:
    status, _, body = client.ask("", host=host)

    assert status == 403 and b"host" in body


def test_a_forwarded_port_is_fine(client: Client) -> None:
    assert client.ask("", host="localhost:9999")[0] == 200


def test_a_file_that_cannot_be_read_is_named_and_the_others_still_open(client: Client) -> None:
    status, _, body = client.ask("2/meta")

    assert status == 422 and b"c.npz is no npz file" in body
    assert client.ask("0/slice/0")[0] == 200


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is one loopback address only")
def test_no_other_address_of_this_machine_is_listened_at(client: Client) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", client.port), timeout=5)


def test_a_broken_file_is_raised_before_anything_is_served(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"c\.npz is no npz file"), serving(folder / "c.npz"):
        pass


def test_a_port_in_use_is_named(client: Client, folder: Path) -> None:
    with (
        pytest.raises(OSError, match=f"port {client.port} of 127.0.0.1 cannot be used"),
        serving(folder, port=client.port),
    ):
        pass


def test_the_server_is_gone_afterwards(folder: Path) -> None:
    with serving(folder) as address:
        client = Client(address)
        assert client.ask("")[0] == 200

    with pytest.raises(ConnectionRefusedError):
        client.ask("")


@pytest.mark.rotating
@pytest.mark.skipif(os.name != "posix", reason="sends the signal that Ctrl-C sends")
def test_ctrl_c_stops_without_a_word(folder: Path) -> None:
    program = f"from intervalnn.view import view; view({str(folder / 'b.npz')!r}, open_browser=False)"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        address = running.stdout.readline().split()[-1]
        status = Client(address).ask("")[0]
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=20)

    assert status == 200 and running.returncode == 0 and complaints == ""


def test_the_browser_is_started_with_a_file_that_nobody_else_can_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, object] = {}

    def open_(url: str) -> None:
        file = Path(url2pathname(urlsplit(url).path))
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (file, file.parent)]
        seen.update(url=url, file=file, text=file.read_text(), modes=modes)
        raise KeyboardInterrupt  # as by Ctrl-C

    said: list[str] = []
    monkeypatch.setattr(webbrowser, "open", open_)
    view(folder / "b.npz", say=said.append)

    address = said[0].split("\n")[0].split()[-1]
    token = address.split("/")[3]
    assert str(seen["url"]).startswith("file://") and token not in str(seen["url"])
    assert f'content="0; url={address}"' in str(seen["text"]) and f'href="{address}"' in str(seen["text"])
    assert os.name != "posix" or seen["modes"] == [0o600, 0o700]
    assert not Path(str(seen["file"])).parent.exists()


ODD = {
    "dims": (np.array([2, 2]), "must be a whole number, got int64 of shape (2,)"),
    "dims ": (np.array(np.nan), "must be a whole number, got float64"),
    "dims  ": (np.array(np.inf), "must be a whole number"),
    "dims   ": (np.array("2"), "must be a whole number"),
    "dims    ": (np.array(7), "dims must be 1 for signals or 2 for images, got 7"),
    "spacing": (np.array([1.0, np.inf]), "spacing must be 2 numbers above 0"),
    "spacing ": (np.array([1.0, np.nan]), "spacing must be 2 numbers above 0"),
    "spacing  ": (np.array(["a", "b"]), "must be a list of numbers, got <U1 of shape (2,)"),
    "spacing   ": (np.array([1j, 1]), "must be a list of numbers, got complex128"),
    "spacing    ": (np.array(1.0), "must be a list of numbers"),
    "unit": (np.array(["a", "b"]), "unit of"),
    "unit ": (np.array(1.5), "must be a text, got float64"),
    "unit  ": (np.array(b"HU"), "must be a text"),
    "promise": (np.array([["a"]]), "must be a text"),
    "point": (np.full((2, 1, 4, 5), 1e307), "point must hold numbers up to 1e+300, or infinite ones"),
    "point ": (np.full((2, 1, 4, 5), "a"), "must hold real numbers"),
    "below": (np.full((2, 1, 4, 5), -1.0), "has negative numbers"),
    "score": (np.zeros((2, 1, 4)), "must have shape"),
    "target": (np.zeros(()), "must have shape"),
    "spacing     ": (np.array([1e-300, 1e300]), "from 1e-06 to 1e+06"),
    "score ": (np.full((2, 1, 4, 5), -1.0), "must hold numbers of 0 or more"),
    "direction": (np.full((2, 1, 4, 5), 2.0), "must hold numbers from -1 to 1"),
}


@pytest.mark.rotating
@pytest.mark.parametrize("case", ODD)
def test_odd_facts_are_said_on_the_page(case: str, tmp_path: Path) -> None:
    volume(tmp_path / "a.npz")
    change, why = ODD[case]
    arrays = {name: np.zeros((2, 1, 4, 5)) for name in ("point", "below", "above")} | {case.strip(): change}
    np.savez(tmp_path / "b.npz", **arrays)

    with serving(tmp_path) as address:
        status, _, body = Client(address).ask("1/meta")
        good = Client(address).ask("0/meta")[0]

    assert (status, good) == (422, 200) and why in body.decode()


def test_whatever_goes_wrong_is_said_on_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Levels, "packed", lambda *_: 1 / 0)

    with serving(folder) as address:
        status, _, body = Client(address).ask("0/slice/0")

    assert (status, body) == (422, b"it cannot be shown: ZeroDivisionError('division by zero')")


@pytest.mark.rotating
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324])
def test_numbers_without_end_make_a_page_that_is_json(value: float, tmp_path: Path) -> None:
    point = np.linspace(-1, 1, 40).reshape(2, 1, 4, 5)
    gap = np.abs(point)
    for array in (point, gap):
        array[0, 0, :2] = value if array is point else abs(value)
    np.savez(tmp_path / "a.npz", point=point, below=gap, above=gap, target=point, input=point)

    with serving(tmp_path / "a.npz") as address:
        answers = [Client(address).ask(f"0/{what}") for what in ("meta", "slice/0", "slice/1", "counts")]

    assert [status for status, _, _ in answers] == [200] * 4
    json.loads(answers[0][2], parse_constant=pytest.fail)
