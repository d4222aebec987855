"""What uv's error text means, in one line.

uv explains a failure over many lines of causes. A user needs one: which package could not be had, or why the
requirements contradict each other.
"""

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

Kind = Literal["network", "resolution", "disk", "other"]

_NETWORK = re.compile(
    r"error sending request|dns error|failed to lookup address|connection refused|connection reset"
    r"|tunnel error|timed out|timeout|network was disabled|network is unreachable|client error \(connect\)"
    r"|request failed after|HTTP status (client|server) error",
    re.IGNORECASE,
)
_FETCHED = re.compile(r"(?:failed to (?:fetch|download)|request for url)[:\s]*[`(]?([^`)\s]+)", re.IGNORECASE)
_CHANGED = re.compile(r"Hash mismatch for `([^`]+)`")
_BECAUSE = re.compile(r"Because (.+?)(?:, we can conclude|$)", re.DOTALL)


@dataclass(frozen=True)
class UvFailure:
    """One line about why uv failed; `package` is empty where uv names none."""

    kind: Kind
    package: str
    line: str


def explain(stderr: str) -> UvFailure:
    """The kind of failure, the package it is about, and one line saying so."""
    text = stderr.strip()
    if "No space left on device" in text:
        return UvFailure("disk", "", "no space left on the device")
    changed = _CHANGED.search(text)
    if changed is not None:
        package = changed.group(1)
        return UvFailure("other", package, f"{package}: its file has another hash than the one that was resolved")
    if _NETWORK.search(text):
        fetched = _FETCHED.search(text)
        package = _package_of(fetched.group(1)) if fetched else _package_not_in_cache(text)
        return UvFailure("network", package, f"{package or 'a package'}: {_innermost_cause(text)}")
    because = _BECAUSE.search(text)
    if "No solution found" in text and because:
        return UvFailure("resolution", "", " ".join(because.group(1).split()))
    return UvFailure("other", "", _innermost_cause(text))


def _package_of(address: str) -> str:
    """The package a request was for: `…/simple/NAME/`, a file name, or `NAME==VERSION` itself."""
    if "://" not in address:
        return address
    parts = [part for part in urlsplit(address).path.split("/") if part]
    if not parts:
        return urlsplit(address).netloc
    last = unquote(parts[-1])
    return last.split("-")[0] if last.endswith((".whl", ".gz", ".zip", ".metadata")) else last


def _package_not_in_cache(text: str) -> str:
    missing = re.search(r"Because (\S+) was not found in the cache", text)
    return missing.group(1) if missing else ""


def _innermost_cause(text: str) -> str:
    if "network was disabled" in text:
        return "the network is switched off and the cache does not hold it"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("hint:")]
    cause = lines[-1] if lines else "uv failed without a word"
    return re.sub(r"^(?:error|cause|Caused by|╰─▶|×)[:\s]*", "", cause)
