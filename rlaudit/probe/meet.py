"""Who is there: release, model, limits, and what the server takes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from rlaudit.errors import NotFinished
from rlaudit.probe.answer import NotAnAnswer
from rlaudit.probe.server import AS_IDS, CHAT, COMPLETIONS, Refused, Server
from rlaudit.text.printable import one_line, printable

TRIED = "The name of the dog was"
# What a server of another kind than vLLM may refuse.
OPTIONAL = ("top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
LOGPROBS = (20, 5, 2)
FEWEST_LISTED = 2
MOST_OF_A_NAME = 200
CACHE_CONFIG = re.compile(r"^vllm:cache_config_info\{([^}\n]{0,4000})\}", re.MULTILINE)
LABEL = re.compile(r'(\w{1,60})="([^"]{0,200})"')


@dataclass(frozen=True, kw_only=True)
class Who:
    """A server as it presents itself; None for what it does not say."""

    address: str
    # Of vLLM.
    release: str | None
    model: str
    most_tokens: int | None
    # `v1/completions` or `v1/chat/completions`.
    endpoint: str
    logprobs: int
    choices: int
    # By the parameters that it refuses, what it says.
    refuses: Mapping[str, str]
    # Of vLLM's CacheConfig, by the server's metrics; empty without them.
    cache: Mapping[str, str]


def meet(server: Server, model: str | None = None) -> Who:
    """Find out what the server takes, and set it up so.

    Raises NotFinished if it has no model, or returns no logprobs in any way; Stopped and Spent as `Server.ask`.
    """
    version = server.get("version")
    release = version.get("version") if isinstance(version, Mapping) else None
    models = _models(server)
    if model is None and not models:
        raise NotFinished(f"{server.address} lists no model", "is it a server of the OpenAI kind? else name --model")
    server.model = model or next(iter(models))
    _settle(server)
    return Who(
        address=server.address,
        release=_release(release),
        model=_name(server.model),
        most_tokens=models.get(server.model),
        endpoint=CHAT if server.chat else COMPLETIONS,
        logprobs=server.most_logprobs,
        choices=server.most_choices,
        refuses=dict(server.refuses),
        cache=_cache(server.get("metrics")),
    )


def _models(server: Server) -> dict[str, int | None]:
    document = server.get("v1/models")
    listed = document.get("data") if isinstance(document, Mapping) else None
    models: dict[str, int | None] = {}
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), str):
            length = entry.get("max_model_len")
            models[entry["id"]] = length if isinstance(length, int) and not isinstance(length, bool) else None
    return models


def _settle(server: Server) -> None:
    """Leave out what the server refuses, one thing after the other, in completions and then in chats."""
    refused = []
    for path, chat in ((COMPLETIONS, False), (CHAT, True)):
        server.chat = chat
        refusals: list[str] = []
        if _tried(server, refusals) or _without_extras(server, refusals):
            return
        refused.append(f"{path}: {refusals[-1]}")
    raise NotFinished(f"{server.address} returns no logprobs. {'; '.join(refused)}", "does it serve a model?")


def _without_extras(server: Server, refusals: list[str]) -> bool:
    """Ask for as little as can be, then add what is taken; False if even that is refused."""
    server.refuses = dict.fromkeys((*OPTIONAL, AS_IDS), "")
    server.most_choices = 1
    for number in LOGPROBS:
        server.most_logprobs = number
        if _tried(server, refusals):
            break
    else:
        server.refuses, server.most_logprobs, server.most_choices = {}, LOGPROBS[0], 64
        return False
    for name in (*OPTIONAL, AS_IDS):
        server.refuses.pop(name)
        if not _tried(server, refusals):
            server.refuses[name] = refusals[-1]
    for number in (64, 8):
        server.most_choices = number
        if _tried(server, refusals):
            return True
    server.most_choices = 1
    return True


def _tried(server: Server, refusals: list[str]) -> bool:
    """Return whether alternatives are listed; from then on as many are requested as are."""
    try:
        drawn = list(server.ask(TRIED, choices=server.most_choices).drawn())
    except (Refused, NotAnAnswer) as error:
        refusals.append(str(error))
        return False
    # vLLM lists a drawn token of a lower rank as well.
    listed = min((len(position.top) for position in drawn), default=0)
    if listed < FEWEST_LISTED:
        refusals.append("it lists no alternatives")
        return False
    server.most_logprobs = min(server.most_logprobs, listed)
    return True


def _cache(metrics: object) -> dict[str, str]:
    """Return the labels of `vllm:cache_config_info`, which every release from 0.8.5 on has."""
    line = CACHE_CONFIG.search(metrics) if isinstance(metrics, str) else None
    return dict(LABEL.findall(line[1])) if line else {}


def _release(version: object) -> str | None:
    """Return a release of vLLM, None if a server says something else under that address."""
    try:
        return str(Version(version)) if isinstance(version, str) else None
    except InvalidVersion:
        return None


def _name(text: str) -> str:
    shown: str = printable(one_line(text))[:MOST_OF_A_NAME]
    return shown
