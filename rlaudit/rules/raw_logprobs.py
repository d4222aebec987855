"""The engine returns logprobs before temperature, and the trainer computes them after it.

What changed
    V0 computed the returned logprobs after penalties, temperature and filters. V1 computes them before all of these.
    Before 0.10.0 V1 returns only raw logprobs; since 0.10.0 they are the default (`logprobs_mode=raw_logprobs`). From
    0.10.2 on, `processed_logprobs` returns what V0 returned.
    Source: vllm/v1/sample/sampler.py (0.8.5:28, 0.10.2:143), vLLM pull requests 21398 and 22387.

Why it matters
    A trainer that divides its logits by the sampling temperature compares its log p at T with vLLM's log p at 1.
    Importance ratios leave 1 on the first step, and clip rates and KL rise. The loss then weighs tokens by how
    uncertain the model was, not by how far the policy moved. Measured with SmolLM2 at T=0.7: mean ratio 1.16, k3 0.056
    nats.
    A trainer that does not divide its logits needs raw logprobs (rule processed-for-a-plain-trainer). At temperature 1,
    without filters and penalties, raw and processed logprobs are the same, and this finding is only a note.

Example
    Reported:

        from: 0.8.5
        to: 0.18.1
        environment: {VLLM_USE_V1: "0"}
        sampling: {temperature: 0.7}
        trainer: {divides_by_temperature: true, uses_rollout_logprobs: true}

    Use instead:

        engine: {logprobs_mode: processed_logprobs}

Safe to ignore when
    The trainer never reads the returned logprobs (it recomputes old logprobs and writes no metric of the mismatch),
    or it scores with temperature 1.

How to confirm
    `rlaudit ablate v0-to-v1` with your temperature: the factor `logprobs-mode` alone must bring the mean ratio to
    1.
"""

from collections.abc import Iterator
from dataclasses import replace

from packaging.version import Version

from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.returned_logprobs import (
    Returned,
    asks_for_none,
    engine_of,
    in_the_loss,
    returned_logprobs,
)
from rlaudit.rules.audit.rule import Rule
from rlaudit.rules.audit.sampling import filters, is_greedy, listed, penalties, temperature
from rlaudit.rules.audit.trial import Trial
from rlaudit.severity import Severity
from rlaudit.unknown import Unknown
from rlaudit.vllm.measured import measured
from rlaudit.vllm.milestones import LOGPROBS_MODE, PROCESSED_IS_FINAL

CONFIRM = Trial(("logprobs-mode",), look="the mean ratio has to be 1 with processed logprobs, and not with raw ones")


def check(audit: Audit) -> Iterator[Finding]:
    """Report raw logprobs against a trainer that computes processed ones."""
    returned = returned_logprobs(audit.after)
    if asks_for_none(audit.config):
        return
    if audit.config.facts.uses_rollout_logprobs is False or is_greedy(audit.after):
        return
    if isinstance(returned, Unknown):
        if audit.config.facts.divides_by_temperature is not False:
            message = f"It is not known whether {engine_of(audit.after)} returns raw or processed logprobs. "
            message += f"{returned.reason}."
            heat = temperature(audit.after)
            matters = audit.config.facts.divides_by_temperature is True and not isinstance(heat, Unknown) and heat != 1
            severity = Severity.WARNING if matters else Severity.NOTE
            yield RULE.finding(audit, severity, "logprobs_mode", message, confirm=CONFIRM, by=("temperature",))
    elif returned is Returned.RAW:
        verdict = _verdict(audit)
        if verdict is not None:
            severity, sentence = verdict
            safe = returned_logprobs(audit.before) is Returned.PROCESSED
            fix = None
            if audit.after.version >= PROCESSED_IS_FINAL:
                fix = audit.fix("return processed logprobs", safe, logprobs_mode="processed_logprobs")
            message = f"{_returned_sentence(audit)} {sentence} {_remedy(audit)}"
            confirm = replace(CONFIRM, look=f"{CONFIRM.look}{_measured_shift(audit)}")
            yield RULE.finding(audit, severity, "logprobs_mode", message, fix, confirm, by=("temperature",))


def _verdict(audit: Audit) -> tuple[Severity, str] | None:
    """Return the severity, and a sentence with the reason; None if the trainer needs raw logprobs."""
    divides, uses = audit.config.facts.divides_by_temperature, audit.config.facts.uses_rollout_logprobs
    heat, cut = temperature(audit.after), filters(audit.after)
    trainer_does = []
    if divides is True and not isinstance(heat, Unknown) and heat != 1:
        trainer_does.append(f"divides its logits by the temperature of {heat:g}")
    if audit.config.facts.replays_filters is True and cut:
        trainer_does.append(f"applies {listed(cut)}")
    if trainer_does:
        does = f"The trainer {' and '.join(trainer_does)}"
        if not in_the_loss(audit.config):
            reason = f"{does}, so the logged mismatch is wrong. The loss is right: it uses recomputed old logprobs."
            return Severity.WARNING, reason
        sentence = f"{does}, so its importance ratios are wrong from the first step"
        return (
            (Severity.ERROR, f"{sentence}.")
            if uses is True
            else (Severity.WARNING, f"{sentence} if it uses these logprobs.")
        )
    if divides is False:
        return None
    if isinstance(heat, Unknown):
        open_question = (
            f"It is not known whether the trainer's logprobs leave out the temperature as well: {heat.reason}."
        )
    elif heat != 1:
        open_question = f"A trainer that divides its logits by the temperature of {heat:g} computes other logprobs."
    elif cut or penalties(audit.after):
        return None  # filters-not-replayed and penalties-in-logprobs say what that means for this trainer
    else:
        return Severity.NOTE, "At temperature 1, without filters and penalties, raw and processed logprobs are equal."
    heard_of_trainer = audit.config.has_trainer or returned_logprobs(audit.before) is Returned.PROCESSED
    return (Severity.WARNING if heard_of_trainer else Severity.NOTE), open_question


def _returned_sentence(audit: Audit) -> str:
    now = f"{engine_of(audit.after)} returns raw logprobs, computed before temperature"
    before = returned_logprobs(audit.before)
    if audit.migrates and before is Returned.PROCESSED:
        return f"{now}; {engine_of(audit.before)} returned processed logprobs."
    return f"{now}."


def _measured_shift(audit: Audit) -> str:
    """Return the shift that was measured with this release's raw logprobs, if its sampler is the measured one."""
    version, platform = audit.after.version, audit.after.machine.platform
    shift = _shift(version, platform) if platform != "cpu" else None
    if shift is not None:
        return f". With raw logprobs of vLLM {version}, rlaudit measured {shift}"
    # Runner V2 of CUDA has a sampler of its own (vllm/v1/worker/gpu/sample).
    shift = _shift(version, "cpu") if audit.after.value("model_runner") == "V1" else None
    same = "" if platform == "cpu" else ", which has the sampler of CUDA"
    return "" if shift is None else f". With raw logprobs of vLLM {version} (CPU build{same}), rlaudit measured {shift}"


def _shift(version: Version, platform: str) -> str | None:
    release = measured(version, platform)
    shift = release and release.cells.get("temperature/candidate/mean_ratio_minus_one")
    if not release or not shift or release.cells["temperature/candidate/logprobs"]["word"] != "raw":
        return None
    value, low, high = (f"{shift[end]:.2g}" for end in ("value", "low", "high"))
    return f"a mean ratio minus 1 of {value} [{low}, {high}] at T = 0.7 on {release.machine}"


def _remedy(audit: Audit) -> str:
    if audit.after.version >= PROCESSED_IS_FINAL:
        return "Set logprobs_mode=processed_logprobs."
    if audit.after.version >= LOGPROBS_MODE:
        return "processed_logprobs lacks the temperature before 0.10.2: move to 0.10.2 or later and set it there."
    return "V1 has no other logprobs before 0.10: move to 0.10.2 or later and set logprobs_mode=processed_logprobs."


RULE = Rule("raw-logprobs", Layer.SEMANTIC, check, defaults=("logprobs_mode",))
