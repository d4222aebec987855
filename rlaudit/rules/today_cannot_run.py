"""The release that is said to run today cannot run this, and the one after the migration can: another release runs it.

What changed
    Nothing in vLLM: the config asks for what came after the release that the audit starts from. A release refuses
    arguments that it does not have yet, and the framework's pinned release may not run with it. external_launcher
    without a seed stopped vLLM up to 0.10.2. AsyncLLM is V1's own class, and stops if V0 would run.

Why it matters
    This report compares the new release with one that never ran this job. So its findings about defaults may belong
    to a migration that took place long ago.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        engine: {logprobs_mode: processed_logprobs}

    Use instead:

        from: 0.10.0
        to: 0.18.1
        engine: {logprobs_mode: processed_logprobs}

Safe to ignore when
    the config was prepared for the new release already, and what runs today is another version of it.

How to confirm
    Look at the lock file or the image of the last run, and give that release with --from.
"""

from collections.abc import Iterator
from dataclasses import replace

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.place import Place
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.lifetimes import lifetime
from rlaudit.vllm.resolution.engine import why_v1s_class_stops

CONFIRM = "the release in the lock file or image of the last run"
MOST = 3
_LAUNCHER = "external_launcher"


def check(audit: Audit) -> Iterator[Finding]:
    """Report why the release before the migration cannot run the config.

    Written arguments alone give a note: they may have been written to prepare the migration.
    """
    if not audit.migrates:
        return
    certain = [*_refused_pin(audit), *_unseeded(audit.before), *_class_of_v1(audit.before)]
    reasons = [*certain, *_too_new(audit)]
    if not reasons:
        return
    setting, place, _ = reasons[0]
    problems = list(dict.fromkeys(reason for _, _, reason in reasons))
    others = f"; and {len(problems) - MOST} more" if len(problems) > MOST else ""
    refuses = f"vLLM {audit.before.version} cannot run this config: {'; '.join(problems[:MOST])}{others}"
    message = f"{refuses}. Give today's release of vLLM: --from VERSION."
    severity = Severity.WARNING if certain else Severity.NOTE
    yield replace(RULE.finding(audit, severity, setting, message, confirm=CONFIRM, place=place), so_today=True)


def _too_new(audit: Audit) -> Iterator[tuple[str, Place | None, str]]:
    """Yield written arguments that are newer than the release that runs today."""
    for name, setting in audit.before.config.engine.items():
        life = lifetime("engine", name)
        written = setting.place is not None and setting.value is not None
        if written and life is not None and life[0] > audit.before.version and audit.after.exists(name):
            yield name, setting.place, f"{name} is new in {life[0]}"


def _refused_pin(audit: Audit) -> Iterator[tuple[str, Place | None, str]]:
    """Yield a pin of the framework that runs only with the release after the migration."""
    pin = audit.before.config.refused_pin
    if pin is not None and audit.after.config.refused_pin is None:
        yield pin.where, None, f"{pin.where} {pin.because}"


def _unseeded(side: Side) -> Iterator[tuple[str, Place | None, str]]:
    """Yield a missing seed (vllm/config.py, verify_with_parallel_config); later releases have a default seed."""
    executor, seed = side.value("distributed_executor_backend"), side.value("seed")
    if executor == _LAUNCHER and seed is None and not isinstance(seed, Unknown) and side.exists("seed"):
        yield "seed", None, f"{_LAUNCHER} needs a seed in this release, and nothing sets one"


def _class_of_v1(side: Side) -> Iterator[tuple[str, Place | None, str]]:
    """Yield V1's own class in a program of a release that would run V0."""
    reason = why_v1s_class_stops(side.resolution)
    if reason is not None:
        yield "engine", None, f"AsyncLLM is V1's own class, and stops with {reason}"


RULE = Rule("today-cannot-run", Layer.INFERENCE_PATH, check)
