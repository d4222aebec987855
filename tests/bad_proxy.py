"""A proxy that makes servers worse: it strips fields, lists fewer logprobs, mixes replicas, is late, and loses."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import httpx


@contextmanager
def proxied(
    *replicas: str,
    strips: Sequence[str] = (),
    most_logprobs: int = 20,
    loses_every: int = 0,
    seconds: float = 0.0,
    hides: Sequence[str] = (),
) -> Iterator[str]:
    """Serve replicas in turn and yield the address.

    strips: fields of a request. most_logprobs: listed, however many are requested. loses_every: of so many requests one
    connection ends without an answer. seconds: before each answer. hides: paths that it does not have.
    """
    requests = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kept = {name: value for name, value in body.items() if name not in strips}
            if isinstance(kept.get("logprobs"), int):
                kept["logprobs"] = min(kept["logprobs"], most_logprobs)
            self._pass_on(kept)

        def _pass_on(self, body: Any) -> None:
            number = next(requests)
            time.sleep(seconds)
            if loses_every and number % loses_every == loses_every - 1:
                self.close_connection = True
                return
            if self.path in hides:
                status, content = 404, b"{}"
            else:
                answer = client.request(self.command, replicas[number % len(replicas)] + self.path, json=body)
                status, content = answer.status_code, answer.content
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    with httpx.Client() as client:
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
