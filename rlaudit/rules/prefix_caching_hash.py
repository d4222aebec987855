"""The hash that the prefix cache is asked to use does not exist in this version, so that the engine does not start.

What changed
    `prefix_caching_hash_algo=builtin` was the default up to 0.10.1.1 and is rejected from 0.10.2 on, which hashes
    with sha256; 0.10.2 renamed sha256_cbor_64bit to sha256_cbor (vllm/config/cache.py:27). The V0 engine, on the
    other hand, takes nothing but builtin.

Why it matters
    The engine ends before it loads the model. Which hash is used changes no logprob.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {prefix_caching_hash_algo: builtin}

    Use instead:

        engine: {prefix_caching_hash_algo: sha256}

Safe to ignore when
    never: the value is not accepted.

How to confirm
    Start the engine; it names the accepted values.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.severity import Severity
from rlaudit.vllm.renamed import renamed_value

SETTING = "prefix_caching_hash_algo"


def check(audit: Audit) -> Iterator[Finding]:
    """Report a written value that is none of the declared ones."""
    setting, declared = audit.config.engine.get(SETTING), audit.after.catalogue.engine.get(SETTING)
    if setting is None or not isinstance(setting.value, str) or declared is None or not declared.choices:
        return
    if setting.value in declared.choices:
        return
    accepted = ", ".join(declared.choices)
    message = f"vLLM {audit.after.version} does not start with {SETTING}={setting.value}; it takes {accepted}."
    successor = renamed_value(SETTING, setting.value)
    fix = None
    if successor in declared.choices:
        fix = audit.fix(f"Use {successor}", safe=True, prefix_caching_hash_algo=successor)
    yield RULE.finding(audit, Severity.ERROR, SETTING, message, fix)


RULE = Rule("prefix-caching-hash", Layer.INFERENCE_PATH, check)
