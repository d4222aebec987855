"""What a probe found, as the file of `vllm serve --config` that would make it so: `rlaudit inspect` reads it.

Only what was seen is in it: what the logprobs are, and what the server's metrics say of its cache.
"""

import json
from collections.abc import Iterator

from packaging.version import Version

from rlaudit.probe.course import Probed
from rlaudit.vllm.milestones import LOGPROBS_MODE


def as_config(probed: Probed) -> str:
    """Return the YAML file."""
    who = probed.who
    release = f"vLLM {who.release}" if who.release else "a server that names no release"
    heading = f"# Found by rlaudit probe at {who.address}, {release}. rlaudit inspect reads it with --from RELEASE."
    return "\n".join([heading, *_lines(probed)]) + "\n"


def _lines(probed: Probed) -> Iterator[str]:
    who = probed.who
    yield f"model: {json.dumps(who.model)}"
    if who.most_tokens:
        yield f"max-model-len: {who.most_tokens}"
    reported = {parameter.in_report for parameter in probed.parameters}
    if (
        who.release
        and Version(who.release) >= LOGPROBS_MODE
        and reported & {True, False}
        and len(reported - {None}) == 1
    ):
        yield f"logprobs-mode: {'processed' if True in reported else 'raw'}_logprobs"
    cached = who.cache.get("enable_prefix_caching")
    if cached in ("True", "False"):
        # A written `false` is dropped up to 0.27.1.
        yield f"{'' if cached == 'True' else 'no-'}enable-prefix-caching: true"
    if who.cache.get("block_size", "").isdecimal():
        yield f"block-size: {who.cache['block_size']}"
    if who.cache.get("cache_dtype", "").replace("_", "").isalnum():
        yield f"kv-cache-dtype: {who.cache['cache_dtype']}"
