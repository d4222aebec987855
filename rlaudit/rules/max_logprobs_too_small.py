"""Requests ask for more logprobs than the server grants.

What changed
    `max_logprobs` is 20 by default in every release and a request above it is refused. From 0.10.1 on, `-1` takes the
    limit away in V1. Before that, and in V0, it is a limit of minus one that refuses every request for logprobs.
    Source: _validate_logprobs, vllm/v1/engine/processor.py (0.10.0:62, 0.10.1:64), vllm/engine/llm_engine.py
    (0.9.2:749).

Why it matters
    Every rollout request fails with a ValueError (HTTP 400), at the first step or when evaluation starts.

Example
    Reported:

        to: 0.18.1
        sampling: {logprobs: 50}

    Use instead:

        engine: {max_logprobs: 50}

Safe to ignore when
    Never where requests really carry this number.

How to confirm
    Send one request.
"""

from collections.abc import Iterator
from typing import Any

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import engine_of
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import MINUS_ONE_IS_NO_LIMIT

ASKING = ("logprobs", "prompt_logprobs")


def check(audit: Audit) -> Iterator[Finding]:
    """Report requests for more logprobs than the limit grants."""
    for name in ASKING:
        requested, limit = audit.after.sampling(name), _limit(audit.after)
        if limit is not None and _is_number(requested) and requested > max(limit, 0):
            fine_today = audit.migrates and _granted(audit.before, requested)
            fix = audit.fix(f"grant {requested} logprobs", safe=fine_today, max_logprobs=requested)
            message = f"Requests ask for {name}={requested}, but {engine_of(audit.after)} allows max_logprobs={limit}"
            message += f", so it refuses every request. Set max_logprobs={requested} or more."
            yield RULE.finding(audit, Severity.ERROR, name, message, fix)


def _limit(side: Side) -> int | None:
    """Return the limit; None if it is missing or unknown."""
    limit = side.value("max_logprobs")
    if not _is_number(limit) or (limit == -1 and side.is_v1 is not False and side.version >= MINUS_ONE_IS_NO_LIMIT):
        return None
    return int(limit)


def _granted(side: Side, requested: int) -> bool:
    limit = _limit(side)
    return limit is None or requested <= limit


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


RULE = Rule("max-logprobs-too-small", Layer.SEMANTIC, check, defaults=("max_logprobs",))
