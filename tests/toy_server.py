"""A server of completions whose model, report and draws are known: what a probe says is held against what it does."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np

from rlaudit.arrays import Floats

WORDS = 300
NEUTRAL = {
    "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0,
    "frequency_penalty": 0.0, "logit_bias": None,
}  # fmt: skip
FILTERS = ("top_p", "top_k", "min_p")


@dataclass
class Toy:
    """What the server does. leaves_out: parameters that the report is without, as vLLM's raw mode is without all."""

    leaves_out: Sequence[str] = ()
    # Parameters that never reach the sampler, as behind a router that strips fields.
    strips: Sequence[str] = ()
    # What is put in for what a request leaves out.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    version: str | None = "0.18.1"
    model: str = "toy"
    most_logprobs: int = 20
    refuses: Sequence[str] = ()
    chat_only: bool = False
    noise: float = 0.0
    # Added to the logprobs of a prompt that has been asked before, as by a stale cache.
    cached_off: float = 0.0
    key: str | None = None
    # A temperature of the draws that nobody asked for.
    sharpened: float = 1.0
    seed: int = 7
    requests: list[dict[str, Any]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def complete(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document of a request. Raises ValueError for what the server refuses."""
        self.requests.append(dict(body))
        for name in self.refuses:
            if name in body:
                raise ValueError(f"unexpected field {name}")
        if (body.get("top_logprobs") if self.chat_only else body.get("logprobs") or 0) > self.most_logprobs:
            raise ValueError(f"at most {self.most_logprobs} logprobs")
        asked = {name: body.get(name, self.defaults.get(name, value)) for name, value in NEUTRAL.items()}
        asked = {name: NEUTRAL[name] if name in self.strips else value for name, value in asked.items()}
        reported = {name: NEUTRAL[name] if name in self.leaves_out else value for name, value in asked.items()}
        prompt = _ids(body["messages"][-1]["content"] if self.chat_only else body["prompt"])
        asked = {**asked, "temperature": asked["temperature"] * self.sharpened}
        off = self.cached_off if str(prompt) in self.known else 0.0
        self.known.add(str(prompt))
        choices = [self._choice(prompt, asked, reported, body, off) for _ in range(body.get("n", 1))]
        return {"choices": choices}

    def _choice(
        self,
        prompt: list[int],
        asked: Mapping[str, Any],
        reported: Mapping[str, Any],
        body: Mapping[str, Any],
        off: float,
    ) -> dict[str, Any]:
        said: list[int] = []
        rows = []
        as_ids = bool(body.get("return_tokens_as_token_ids"))
        number = body.get("top_logprobs") if self.chat_only else body.get("logprobs")
        for _ in range(body["max_tokens"]):
            token = int(np.searchsorted(_cumulative(*_key(prompt, said, asked)), self.rng.random()))
            seen_V, top = _listed(*_key(prompt, said, reported), number or 0, as_ids)
            if self.noise or off:
                seen_V = seen_V + self.noise * self.rng.standard_normal(WORDS) + off
                top = _top(seen_V, number or 0, as_ids)
            rows.append((_name(token, as_ids), _written(seen_V[token]), top))
            said.append(token)
        if self.chat_only:
            content = [(name, logprob, [_entry(*each) for each in top.items()]) for name, logprob, top in rows]
            return {"logprobs": {"content": [{**_entry(*row[:2]), "top_logprobs": row[2]} for row in content]}}
        logprobs = {
            "tokens": [name for name, _, _ in rows],
            "token_logprobs": [logprob for _, logprob, _ in rows],
            "top_logprobs": [{**top, name: logprob} for name, logprob, top in rows],
        }
        choice: dict[str, Any] = {"logprobs": logprobs}
        if body.get("prompt_logprobs") is not None:
            places = [None] + [
                {str(prompt[at]): {"logprob": _written(_log_probabilities(prompt[:at], [], NEUTRAL)[prompt[at]])}}
                for at in range(1, len(prompt))
            ]
            choice["prompt_logprobs"] = places
        return choice


def _log_probabilities(prompt: list[int], said: list[int], asked: Mapping[str, Any]) -> Floats:
    return _known(*_key(prompt, said, asked))


def _key(prompt: list[int], said: list[int], asked: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    bias = tuple((asked["logit_bias"] or {}).items())
    return tuple(prompt), tuple(said), tuple({**asked, "logit_bias": bias}.items())


@lru_cache(maxsize=20_000)
def _cumulative(*key: Any) -> Floats:
    cumulative_V: Floats = np.cumsum(np.exp(_known(*key)))
    return cumulative_V / cumulative_V[-1]


@lru_cache(maxsize=20_000)
def _listed(prompt: Any, said: Any, parameters: Any, number: int, as_ids: bool) -> tuple[Floats, dict[str, float]]:
    seen_V = _known(prompt, said, parameters)
    return seen_V, _top(seen_V, number, as_ids)


def _top(seen_V: Floats, number: int, as_ids: bool) -> dict[str, float]:
    return {_name(each, as_ids): _written(seen_V[each]) for each in np.argsort(-seen_V)[:number].tolist()}


@lru_cache(maxsize=20_000)
def _known(prompt: tuple[int, ...], said: tuple[int, ...], parameters: tuple[tuple[str, Any], ...]) -> Floats:
    """Return the log probabilities of the next token in vLLM's order: bias, penalties, temperature, filters."""
    asked = dict(parameters)
    logits_V = _logits((*prompt, *said))
    for token, added in asked["logit_bias"]:
        logits_V[int(token)] += added
    for token in {*prompt, *said}:
        penalty = asked["repetition_penalty"]
        logits_V[token] = logits_V[token] / penalty if logits_V[token] > 0 else logits_V[token] * penalty
    for token in said:
        logits_V[token] -= asked["frequency_penalty"]
    for token in set(said):
        logits_V[token] -= asked["presence_penalty"]
    logits_V /= asked["temperature"]
    logprobs_V = logits_V - np.logaddexp.reduce(logits_V)
    order = np.argsort(-logprobs_V)
    kept = np.ones(WORDS, dtype=bool)
    kept[logprobs_V < logprobs_V.max() + np.log(max(asked["min_p"], 1e-30))] = False
    if asked["top_k"] > 0:
        kept[order[asked["top_k"] :]] = False
    before = np.cumsum(np.exp(logprobs_V[order])) - np.exp(logprobs_V[order])
    kept[order[before >= asked["top_p"]]] = False
    cut_V = np.where(kept, logprobs_V, -np.inf)
    log_probabilities_V: Floats = cut_V - np.logaddexp.reduce(cut_V)
    return log_probabilities_V


def _logits(context: tuple[int, ...]) -> Floats:
    """Return logits that depend on the last three tokens; what followed the last token before is likely again."""
    seed = crc32(bytes(str(list(context[-3:])), "utf-8"))
    logits_V = 5.0 + 2.0 * np.random.default_rng(seed).standard_normal(WORDS)
    for before, after in pairwise(context):
        if before == context[-1]:
            logits_V[after] = 12.0
    return logits_V


def _ids(prompt: str | Sequence[int]) -> list[int]:
    if not isinstance(prompt, str):
        return list(prompt)
    return [crc32(word.encode()) % WORDS for word in prompt.split()]


def _entry(name: str, logprob: float) -> dict[str, Any]:
    return {"token": name, "logprob": logprob}


def _name(token: int, as_ids: bool) -> str:
    return f"token_id:{token}" if as_ids else f" w{token}"


def _written(logprob: float) -> float:
    return max(float(logprob), -9999.0)


@contextmanager
def serving(toy: Toy, change: Callable[[str, bytes], bytes | None] = lambda path, body: None) -> Iterator[str]:
    """Serve a toy and yield its address. change: (path, body) -> the body to send instead, None to let it pass."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the body waits for the receipt of the headers, 40 ms a request.
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            if self.path == "/version" and toy.version:
                self._send(200, {"version": toy.version})
            elif self.path == "/v1/models":
                self._send(200, {"data": [{"id": toy.model, "max_model_len": 512}]})
            else:
                self._send(404, {"detail": "Not Found"})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if toy.key and self.headers.get("Authorization") != f"Bearer {toy.key}":
                self._send(401, {"error": "Unauthorized"})
            elif self.path == "/tokenize":
                self._send(200, {"tokens": _ids(body["prompt"])})
            elif self.path == ("/v1/chat/completions" if toy.chat_only else "/v1/completions"):
                try:
                    self._send(200, toy.complete(body))
                except ValueError as error:
                    self._send(400, {"error": {"message": str(error)}})
            else:
                self._send(404, {"detail": "Not Found"})

        def _send(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            if status == 200:
                body = change(self.path, body) or body
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
