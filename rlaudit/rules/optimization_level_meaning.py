"""`-O` with a number means another thing in the new version.

What changed
    Up to 0.11.2 `-O3` set the level of torch.compile: 0 none, 3 piecewise, what V1 does by default. From 0.12.0 on it
    sets an optimization level. 0 neither compiles nor captures, 1 and 2 compile, 2 is the default, 3 is the same as 2
    (0.12.0 vllm/config/vllm.py:233, vllm/utils/argparse_utils.py:247).

Why it matters
    A number that was chosen for one scale is read on another. `-O0`, once "no compilation", now also turns CUDA
    graphs off; `-O1` and `-O2`, once for vLLM's own developers, now compile.

Example
    Reported:

        from: 0.11.2
        to: 0.18.1
        engine: {optimization_level: 3}
        at_from: {engine: {optimization_level: null, compilation_config: 3}}

    Use instead:

        engine: {optimization_level: null}

Safe to ignore when
    you chose the number for the new version.

How to confirm
    `rlaudit ablate CONFIG --from A --to B --factor enforce-eager`.
"""

from collections.abc import Iterator

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.vllm.milestones import OPTIMIZATION_LEVEL
from rlaudit.vllm.resolve import number, part

SETTING, FORMER = "optimization_level", "compilation_config"
WAS = ("no compilation", "plain torch.compile", "torch.compile with one trace", "piecewise compilation, V1's default")
IS = (
    "neither compilation nor CUDA graphs",
    "compilation and piecewise CUDA graphs",
    "the default",
    "the same as the default, 2",
)


def check(audit: Audit) -> Iterator[Finding]:
    """Report a level that crosses 0.12.0, written as -O: no argument of this name existed before."""
    setting = audit.config.engine.get(SETTING)
    if not audit.crosses(OPTIMIZATION_LEVEL) or setting is None or setting.place is None:
        return
    level = number(setting.value)
    if (
        level is None
        or level not in range(4)
        or not (setting.place.setting.startswith("-O") or _level_before(audit) == level)
    ):
        return
    message = (
        f"-O{level} meant {WAS[level]} in vLLM {audit.before.version} and means {IS[level]} in vLLM "
        f"{audit.after.version}. Choose a level again, or leave the flag out for the default."
    )
    severity = Severity.NOTE if level == 3 else Severity.WARNING
    yield RULE.finding(audit, severity, SETTING, message, confirm=Trial(("enforce-eager",)))


def _level_before(audit: Audit) -> int | None:
    """Return the level that the same flag sets in the release before."""
    former = part(audit.before.resolution, FORMER)
    if isinstance(former, dict):
        former = former.get("level", former.get("mode"))
    return number(former)


RULE = Rule(
    "optimization-level-meaning", Layer.INFERENCE_PATH, check, defaults=("optimization_level", "compilation_config")
)
