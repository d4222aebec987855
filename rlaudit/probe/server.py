"""A server of the OpenAI kind behind an address: read-only, bounded in time, size and number of requests.

It is asked through `/v1/completions`, and through `/v1/chat/completions` if it has none. A redirect is followed only
within the same host, so the key goes nowhere else. A lost connection is tried again; a server that says 429 or 5xx is
left alone.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from rlaudit.errors import UsageError
from rlaudit.files.parse_json import parse_json
from rlaudit.probe.answer import Answer, NotAnAnswer, of_chat, of_completion
from rlaudit.probe.budget import Budget
from rlaudit.secrets import mask
from rlaudit.text.printable import one_line, printable

MOST_BYTES = 16 * 2**20
MOST_REDIRECTS = 3
MOST_IDS = 2**30
TRIES = 3
COMPLETIONS, CHAT = "v1/completions", "v1/chat/completions"
# Tokens that share a text have names of their own then.
AS_IDS = "return_tokens_as_token_ids"
# vLLM's parameters that say nothing if they are written out so. -1, since releases before 0.9 refuse a top_k of 0.
NEUTRAL: Mapping[str, Any] = {
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
SHOWN_OF_A_REFUSAL = 160


class Refused(Exception):
    """The server refuses this request (400, 404, 422), and others not."""


class Stopped(Exception):
    """The server is to be left alone, or is no longer there."""


class Server:
    """One server. Not thread-safe, except for `ask`."""

    def __init__(self, address: str, budget: Budget, key: str | None = None, seconds: float = 60.0, at_once: int = 4):
        """seconds: for one request. at_once: the most requests at a time. Raises UsageError for no web address."""
        self.address = root_of(address)
        self.budget = budget
        self.at_once = at_once
        self.model: str | None = None
        # How many logprobs and choices a request may ask for, and the parameters that the server refuses.
        self.most_logprobs = 20
        self.most_choices = 64
        self.refuses: dict[str, str] = {}
        self.chat = False
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(timeout=seconds, headers=headers, follow_redirects=False)
        self._seconds = seconds

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def get(self, path: str) -> Any:
        """Return the document under a path, its text if it is no JSON; None if there is none. Raises Stopped."""
        try:
            body = self._exchange("GET", path, None)
        except Refused:
            return None
        try:
            return parse_json(body)
        except ValueError:
            return body.decode("utf-8", "replace")

    def ask(self, prompt: str | Sequence[int], tokens: int = 1, choices: int = 1, **asked: Any) -> Answer:
        """Ask for a completion. asked: what is not neutral; None leaves a parameter out.

        Raises Refused, Stopped, Spent, and NotAnAnswer if the server returns something else.
        """
        self.budget.take(tokens * choices)
        written = {**NEUTRAL, **asked}
        body = {
            "model": self.model,
            "max_tokens": tokens,
            "n": choices,
            **{name: value for name, value in written.items() if value is not None and name not in self.refuses},
            **self._logprobs(asked.get("logprobs")),
            **({} if AS_IDS in self.refuses else {AS_IDS: True}),
        }
        return self._chat_answer(prompt, body) if self.chat else self._completion(prompt, body)

    def ask_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Ask several requests at once, at most `at_once` at a time, and return the answers in their order."""
        with ThreadPoolExecutor(self.at_once) as pool:
            return list(pool.map(lambda request: self.ask(**request), requests))

    def ids_of(self, prompt: str) -> list[int] | None:
        """Return the token ids of a prompt by the server's own tokenizer; None if it does not say."""
        try:
            document = parse_json(self._exchange("POST", "tokenize", {"model": self.model, "prompt": prompt}))
        except (Refused, ValueError):
            return None
        ids = document.get("tokens") if isinstance(document, Mapping) else None
        # JSON has `true`, and whole numbers of any size.
        whole = isinstance(ids, list) and all(type(token) is int and 0 <= token < MOST_IDS for token in ids)
        return ids if whole and ids else None

    def _logprobs(self, asked: int | None) -> dict[str, Any]:
        number = self.most_logprobs if asked is None else asked
        if self.chat:
            return {"logprobs": True, "top_logprobs": number}
        return {"logprobs": number}

    def _completion(self, prompt: str | Sequence[int], body: dict[str, Any]) -> Answer:
        words = prompt if isinstance(prompt, str) else list(prompt)
        return of_completion(self._document(COMPLETIONS, {**body, "prompt": words}))

    def _chat_answer(self, prompt: str | Sequence[int], body: dict[str, Any]) -> Answer:
        if not isinstance(prompt, str):
            raise Refused("a chat takes no token ids")
        return of_chat(self._document(CHAT, {**body, "messages": [{"role": "user", "content": prompt}]}))

    def _document(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = self._exchange("POST", path, body)
        try:
            return parse_json(answer)
        except ValueError as error:
            raise NotAnAnswer("it is no JSON") from error

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        address = f"{self.address}/{path}"
        for redirects in range(MOST_REDIRECTS + 1):
            status, moved_to, answer = self._tried(method, address, body)
            if not moved_to:
                break
            there = urljoin(address, moved_to)
            if urlsplit(there)[:2] != urlsplit(address)[:2]:
                raise Stopped(f"it redirects to another host ({_shown(urlsplit(there).netloc)})")
            address = there
            if redirects == MOST_REDIRECTS:
                raise Stopped(f"it redirects more than {MOST_REDIRECTS} times")
        if status in (401, 403):
            raise Stopped(f"it answers {status}: a key is needed (--key-variable, --key-file)")
        if status == 429 or status >= 500:
            raise Stopped(f"it answers {status}{_said(answer)}")
        if status >= 400:
            raise Refused(f"it answers {status}{_said(answer)}")
        return answer

    def _tried(self, method: str, address: str, body: Mapping[str, Any] | None) -> tuple[int, str, bytes]:
        """Return status, place of a redirect, and body. A connection that is lost on the way is tried again."""
        for left in reversed(range(TRIES)):
            try:
                return self._once(method, address, body)
            except httpx.TimeoutException as error:
                raise Stopped(f"it has not answered for {self._seconds:g} s") from error
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if not left:
                    raise Stopped(f"it cannot be reached: {_shown(str(error)) or type(error).__name__}") from error
        raise AssertionError("the last try returns or raises")

    def _once(self, method: str, address: str, body: Mapping[str, Any] | None) -> tuple[int, str, bytes]:
        """Send one request. The whole answer has the time that one read has: a server may send a byte a minute."""
        until = time.monotonic() + self._seconds
        with self._client.stream(method, address, json=body) as response:
            parts, size = [], 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise Stopped(f"an answer has more than {MOST_BYTES // 2**20} MiB")
                if time.monotonic() > until:
                    raise Stopped(f"an answer takes more than {self._seconds:g} s")
            moved_to = response.headers.get("location", "") if response.is_redirect else ""
            return response.status_code, moved_to, b"".join(parts)


def root_of(address: str) -> str:
    """Return the address without /v1 and what follows. Raises UsageError for anything but http and https."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{_shown(address)} is no web address", "give one as http://localhost:8000")
    if parts.username or parts.password:
        raise UsageError("the address holds a password", "give it with --key-variable or --key-file")
    path = parts.path.partition("/v1")[0].rstrip("/")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}{'' if port is None else f':{port}'}{path}"


def _said(body: bytes) -> str:
    """Return what the server says of a refusal, on one line; "" if it says nothing."""
    try:
        document = parse_json(body)
    except ValueError:
        return ""
    for key in ("error", "message", "detail", "object"):
        if isinstance(document, Mapping) and key in document:
            document = document[key] if key != "object" else document
    if isinstance(document, Mapping):
        document = document.get("message", "")
    return f": {_shown(document)}" if isinstance(document, str) and document else ""


def _shown(text: str) -> str:
    shown: str = mask(printable(one_line(text)))
    return shown if len(shown) <= SHOWN_OF_A_REFUSAL else f"{shown[:SHOWN_OF_A_REFUSAL]}..."
