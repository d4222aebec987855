"""A server that is broken or means harm: no traceback, no hang, no key in any output, nothing that a terminal obeys."""

import gzip
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from toy_server import Toy, serving

from rlaudit.cli.app import run
from rlaudit.probe.answer import NotAnAnswer, of_chat, of_completion

KEY = "k3y-of-the-server-0123456789"
Answer = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def answering(get: Answer, post: Answer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            get(self)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            post(self)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def models(handler: BaseHTTPRequestHandler) -> None:
    send(handler, 200, json.dumps({"data": [{"id": "m"}]}).encode())


def probe(address: str, *options: str) -> int:
    return run(["probe", address, "--timeout", "1", "--quiet", *options])


@pytest.mark.parametrize("status", [429, 500, 503, 401])
def test_a_server_that_says_no_is_left_alone_at_once(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def refuse(handler: BaseHTTPRequestHandler) -> None:
        asked.append(1)
        send(handler, status, b'{"error": {"message": "not now"}}')

    with answering(models, refuse) as address:
        assert probe(address) == 3
    assert len(asked) == 1
    assert str(status) in capsys.readouterr().err


def test_a_key_goes_to_no_other_host_and_into_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str | None] = []

    def thief(handler: BaseHTTPRequestHandler) -> None:
        seen.append(handler.headers.get("Authorization"))
        models(handler)

    (tmp_path / "key").write_text(KEY)
    with answering(thief, thief) as there:
        moved = lambda handler: send(handler, 302, b"", Location=f"{there}/v1/models")  # noqa: E731
        with answering(moved, moved) as address:
            assert probe(address, "--key-file", str(tmp_path / "key")) == 3
    assert seen == []
    said = capsys.readouterr()
    assert "another host" in said.err
    assert KEY not in said.out + said.err


def test_a_server_that_repeats_the_key_does_not_get_it_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text(KEY)
    echo = lambda handler: send(handler, 400, json.dumps({"message": f"bad key {KEY}"}).encode())  # noqa: E731
    with answering(models, echo) as address:
        assert probe(address, "--key-file", str(tmp_path / "key")) == 3
    said = capsys.readouterr()
    assert KEY not in said.out + said.err


def test_a_server_that_wants_a_key_gets_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SERVER_KEY", KEY)
    with serving(Toy(key=KEY)) as address:
        assert probe(address) == 3
        assert probe(address, "--key-variable", "SERVER_KEY", "--budget", "60") == 3
    assert "processed" in capsys.readouterr().out


ENDLESS = {
    "body": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-More: y\r\n"),
}


@pytest.mark.parametrize("part", ENDLESS)
def test_an_answer_that_never_ends_takes_no_longer_than_its_limit(
    part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begins, goes_on = ENDLESS[part]

    def drip(handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(begins)
            for _ in range(300):
                handler.wfile.write(goes_on)
                handler.wfile.flush()
                time.sleep(0.05)
        except OSError:
            return

    start = time.monotonic()
    with answering(models, drip) as address:
        assert probe(address) == 3
    assert time.monotonic() - start < 12
    assert "1 s" in capsys.readouterr().err


def test_nothing_compressed_is_unpacked(capsys: pytest.CaptureFixture[str]) -> None:
    bomb = gzip.compress(gzip.compress(b"0" * 10_000_000))
    with answering(models, lambda handler: send(handler, 200, bomb, **{"Content-Encoding": "gzip, gzip"})) as address:
        assert probe(address) == 3
    assert "no JSON" in capsys.readouterr().err


@pytest.mark.parametrize(
    "there", ["http://[::1", "http://xn--/", "http://127.0.0.1:abc/", "//other", "file:///etc/passwd"]
)
def test_a_redirect_to_anything_else_ends_the_probe(there: str, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(models, lambda handler: send(handler, 302, b"", Location=there)) as address:
        assert probe(address) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_a_huge_answer_is_not_read_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(2**34))
        handler.end_headers()
        try:
            for _ in range(2**14):
                handler.wfile.write(b" " * 2**20)
        except OSError:
            return

    with answering(models, flood) as address:
        assert run(["probe", address, "--quiet"]) == 3
    assert "MiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["ftp://host", "file:///etc/passwd", "host:8000", "http://", "http://user:pw@host", "http://[::1", ""]
)
def test_what_is_no_web_address_is_refused(address: str) -> None:
    assert probe(address) == 2


def test_a_server_that_lists_no_alternatives_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    def without(path: str, body: bytes) -> bytes | None:
        document = json.loads(body)
        for choice in document.get("choices", ()):
            choice["logprobs"]["top_logprobs"] = None
        return json.dumps(document).encode() if "choices" in document else None

    with serving(Toy(), without) as address:
        assert probe(address) == 3
    assert "lists no alternatives" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert probe("http://127.0.0.1:9") == 3
    assert "cannot be reached" in capsys.readouterr().err


WRONG: tuple[Any, ...] = (
    None, True, -1, 1e308, "", "\x1b[2J\x1b]0;owned\x07", "<script>alert(1)</script>", "::error::", [], {}, [[]],
    {"a": {}}, "NaN", float("inf"), ["x"] * 3, {"token": None}, "\u202e", 10**400,
)  # fmt: skip


def spoiled(document: Any, rng: random.Random) -> Any:
    """Return a document with one place replaced by a value of a wrong kind."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.2:
        return rng.choice(WRONG)
    if isinstance(document, list):
        place = rng.randrange(len(document))
        return [spoiled(each, rng) if index == place else each for index, each in enumerate(document)]
    key = rng.choice(list(document))
    changed = {**document, key: spoiled(document[key], rng)}
    if rng.random() < 0.2:
        del changed[key]
    return changed


def test_five_thousand_spoiled_answers_are_read_or_refused() -> None:
    toy, rng = Toy(), random.Random(7)
    body = {"prompt": "The name of the dog was", "max_tokens": 2, "n": 2, "logprobs": 5, "prompt_logprobs": 0}
    whole = toy.complete(body)
    chat = Toy(chat_only=True).complete(
        {"messages": [{"content": "The name"}], "max_tokens": 2, "n": 2, "top_logprobs": 5}
    )
    refused = 0
    for document, read in ((whole, of_completion), (chat, of_chat)):
        for _ in range(2500):
            try:
                read(spoiled(document, rng))
            except NotAnAnswer:
                refused += 1
    assert refused > 2000


def test_spoiled_answers_in_the_middle_of_a_probe_never_end_it_with_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(11)

    def spoil(path: str, body: bytes) -> bytes | None:
        if rng.random() < 0.7:
            return None
        return json.dumps(spoiled(json.loads(body), rng)).encode() if rng.random() < 0.8 else b"[" * 100_000

    for seed in range(3):
        with serving(Toy(seed=seed, model="\x1b[31mred<b>"), spoil) as address:
            page = tmp_path / f"{seed}.html"
            assert probe(address, "--output", "text", "--output", f"html:{page}", "--budget", "120") in (0, 3)
        said = capsys.readouterr()
        assert "\x1b[31m" not in said.out
        assert "Traceback" not in said.err
        assert "<b>" not in (page.read_text() if page.exists() else "")
