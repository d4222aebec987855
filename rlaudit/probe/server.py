"""A server of the OpenAI kind behind an address: read-only, bounded in time, size and number of requests.

It is asked through `/v1/completions`, and through `/v1/chat/completions` if it has none. A redirect is followed only
within the same host, so the key goes nowhere else. A lost connection is tried again; a server that says 429 or 5xx is
left alone. Nothing compressed is read: a few bytes may become gigabytes.
"""

import asyncio
from collections.abc import Mapping, Sequence
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
    """One server."""

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
        headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
        # Its own limits are for one read each: `_once` has one for all of a request.
        self._client = httpx.AsyncClient(timeout=None, headers=headers, follow_redirects=False)
        self._runner = asyncio.Runner()
        self._turns = asyncio.Semaphore(at_once)
        self._seconds = seconds

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, path: str) -> Any:
        """Return the document under a path, its text if it is no JSON; None if there is none. Raises Stopped."""
        try:
            body = self._runner.run(self._exchange("GET", path, None))
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
        return self.ask_all([{"prompt": prompt, "tokens": tokens, "choices": choices, **asked}])[0]

    def ask_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Answer]:
        """Ask several requests, at most `at_once` at a time, and return the answers in their order. Raises as `ask`."""

        async def all_of_them() -> list[Answer | BaseException]:
            return await asyncio.gather(*(self._ask(**request) for request in requests), return_exceptions=True)

        answers = self._runner.run(all_of_them())
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if isinstance(answer, Answer)]

    async def _ask(self, prompt: str | Sequence[int], tokens: int = 1, choices: int = 1, **asked: Any) -> Answer:
        self.budget.take(tokens * choices)
        number = asked.get("logprobs", self.most_logprobs)
        written = {**NEUTRAL, **asked, AS_IDS: True}
        body = {
            "model": self.model,
            "max_tokens": tokens,
            "n": choices,
            **{name: value for name, value in written.items() if value is not None and name not in self.refuses},
        }
        if self.chat:
            if not isinstance(prompt, str):
                raise Refused("a chat takes no token ids")
            messages = [{"role": "user", "content": prompt}]
            chat = {**body, "logprobs": True, "top_logprobs": number, "messages": messages}
            return of_chat(await self._document(CHAT, chat))
        return of_completion(await self._document(COMPLETIONS, {**body, "logprobs": number, "prompt": prompt}))

    def ids_of(self, prompt: str) -> list[int] | None:
        """Return the token ids of a prompt by the server's own tokenizer; None if it does not say."""
        try:
            document = self._runner.run(self._document("tokenize", {"model": self.model, "prompt": prompt}))
        except (Refused, NotAnAnswer):
            return None
        ids = document.get("tokens") if isinstance(document, Mapping) else None
        # JSON has `true`, and whole numbers of any size.
        whole = isinstance(ids, list) and all(type(token) is int and 0 <= token < MOST_IDS for token in ids)
        return ids if whole and ids else None

    async def _document(self, path: str, body: Mapping[str, Any]) -> Any:
        answer = await self._exchange("POST", path, body)
        try:
            return parse_json(answer)
        except ValueError as error:
            raise NotAnAnswer("it is no JSON") from error

    async def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        address = f"{self.address}/{path}"
        for redirects in range(MOST_REDIRECTS + 1):
            status, moved_to, answer = await self._tried(method, address, body)
            if not moved_to:
                break
            address = _within(address, moved_to)
            if redirects == MOST_REDIRECTS:
                raise Stopped(f"it redirects more than {MOST_REDIRECTS} times")
        if status in (401, 403):
            raise Stopped(f"it answers {status}: a key is needed (--key-variable, --key-file)")
        if status == 429 or status >= 500:
            raise Stopped(f"it answers {status}{_complaint(answer)}")
        if status >= 400:
            raise Refused(f"it answers {status}{_complaint(answer)}")
        return answer

    async def _tried(self, method: str, address: str, body: Mapping[str, Any] | None) -> tuple[int, str, bytes]:
        """Return status, place of a redirect, and body. A connection that is lost on the way is tried again."""
        for left in reversed(range(TRIES)):
            try:
                async with self._turns, asyncio.timeout(self._seconds):
                    return await self._once(method, address, body)
            except TimeoutError as error:
                raise Stopped(f"an answer takes more than {self._seconds:g} s") from error
            except (httpx.TransportError, httpx.InvalidURL) as error:
                if not left:
                    raise Stopped(f"it cannot be reached: {_shown(str(error)) or type(error).__name__}") from error
            except ValueError as error:
                # httpx looks at a redirect that it is not to follow.
                raise Stopped("it redirects to what is no web address") from error
        raise AssertionError("the last try returns or raises")

    async def _once(self, method: str, address: str, body: Mapping[str, Any] | None) -> tuple[int, str, bytes]:
        async with self._client.stream(method, address, json=body) as response:
            parts, size = [], 0
            async for part in response.aiter_raw():
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise Stopped(f"an answer has more than {MOST_BYTES // 2**20} MiB")
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


def _within(address: str, moved_to: str) -> str:
    """Return where a redirect leads. Raises Stopped if that is another host or no web address."""
    try:
        there = urljoin(address, moved_to)
        host = urlsplit(there).netloc
    except ValueError as error:
        raise Stopped("it redirects to what is no web address") from error
    if urlsplit(there)[:2] != urlsplit(address)[:2]:
        raise Stopped(f"it redirects to another host ({_shown(host)})")
    return there


def _complaint(body: bytes) -> str:
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
