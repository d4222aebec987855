"""A key of a nested config, such as compilation_config, does not exist in this version.

What changed
    `use_cudagraph` and `full_cuda_graph` became `cudagraph_mode` (gone in 0.11.1), `use_inductor` became `backend`
    (gone in 0.12.0), `level` became `mode` (gone in 0.18.0). The passes were renamed in 0.12.0
    (`enable_fi_allreduce_fusion` to `fuse_allreduce_rms` and so on). Source: vllm/config/compilation.py of each
    release.

Why it matters
    From 0.13.0 on the nested config rejects a key that it does not know, and the engine does not start. Before, it
    ignores the key: the config asks for one way of compiling and capturing, and another one runs.

Example
    Reported:

        from: 0.11.0
        to: 0.18.1
        engine: {compilation_config: {level: 3, use_cudagraph: false}}

    Use instead:

        engine: {compilation_config: {mode: 3, cudagraph_mode: NONE}}

Safe to ignore when
    never, where the engine does not start.

How to confirm
    Start the engine: it names the key. `rlaudit ablate CONFIG --from A --to B --factor enforce-eager` tells whether the
    block mattered.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import UNKNOWN_KEY_IS_REFUSED
from rlaudit.vllm.renamed import NESTED, renamed_keys
from rlaudit.vllm.resolve import part

SETTING = "compilation_config"
CONFIRM = Trial(("enforce-eager",))


def check(audit: Audit) -> Iterator[Finding]:
    """Report keys that were there before, or are known to have been, and are not there after."""
    written = part(audit.after.resolution, SETTING)
    if not isinstance(written, dict) or not audit.after.exists(SETTING):
        return
    gone = [key for key in _keys(written) if _is_gone(audit, key)]
    if not gone:
        return
    rejected = audit.after.version >= UNKNOWN_KEY_IS_REFUSED
    effect = "the engine does not start" if rejected else "vLLM ignores the key without a message"
    renamed = renamed_keys(written, gone, audit.after.catalogue.nested)
    message = f"{SETTING} of vLLM {audit.after.version} has no {' and no '.join(gone)}: {effect}"
    fix = None
    if renamed is None:
        message += ". Remove the key, or look up its replacement."
    else:
        message += f". {SETTING}={renamed} says the same."
        fix = audit.fix("Use the keys of the new version", safe=True, compilation_config=renamed)
    yield RULE.finding(audit, Severity.ERROR if rejected else Severity.WARNING, SETTING, message, fix, CONFIRM)


def _keys(written: Mapping[str, Any]) -> Iterator[str]:
    for key, value in written.items():
        if key == "pass_config" and isinstance(value, dict):
            yield from (f"pass_config.{inner}" for inner in value)
        else:
            yield key


def _is_gone(audit: Audit, key: str) -> bool:
    full = f"{SETTING}.{key}"
    known_before = full in audit.before.catalogue.nested or key in NESTED
    return known_before and full not in audit.after.catalogue.nested


RULE = Rule("removed-nested-key", Layer.INFERENCE_PATH, check, already=Severity.WARNING)
