"""What to do about a finding: findings with the same action are settled by it together."""

from rlaudit.rules.audit.audit import Audit
from rlaudit.rules.audit.finding import Action, ActionKind, Finding
from rlaudit.settings.rollout_config import FrameworkReleases, Origin
from rlaudit.unknown import Unknown

# What a reader decides on where no key of the file says it.
IN_WORDS = {
    "importance_sampling_correction": "the importance-sampling correction",
    "logs_mismatch": "logging how far rollout and trainer are apart",
    "pause_clears_cache": "clearing the cache when weights are updated",
    "pause_mode": "how requests are paused when weights are updated",
    "replicas": "the number of engines",
    "weight_updates": "how weights are updated",
}


def action_of(finding: Finding) -> Action | None:
    """Return the action that settles a finding: its fix, else the rule's action; None for a note without a safe fix."""
    fix = finding.fix
    if fix is not None and fix.safe:
        return Action(ActionKind.FIX)
    if finding.severity.rank == 0:
        return None
    if fix is not None:
        return Action(ActionKind.UNSAFE_FIX, fix.description)
    action = finding.action or Action(ActionKind.DECIDE, finding.setting)
    # A setting that is certainly wrong has to change; others are for the reader to decide.
    certain = action.kind is ActionKind.DECIDE and finding.severity.rank > 1
    return Action(ActionKind.CHANGE, action.of) if certain else action


def without_fix(audit: Audit, setting: str, spelt: str) -> Action:
    """Return the action that settles a finding without a fix. spelt: the setting as its file spells it."""
    config, in_words = audit.config, IN_WORDS.get(setting, setting)
    for settings in (config.engine, config.sampling, config.environment, config.trainer, config.options):
        if setting in settings and settings[setting].place is None and settings[setting].origin is Origin.FRAMEWORK:
            # The framework's code sets it, and no line of the user's.
            return Action(ActionKind.DECIDE, in_words) if settings[setting].known else Action(ActionKind.RECORD)
    if audit.after.exists(setting) and isinstance(audit.after.value(setting), Unknown):
        return Action(ActionKind.RECORD)
    return Action(ActionKind.DECIDE, in_words if spelt in ("", setting) else spelt)


def take(framework: str, releases: FrameworkReleases | None, vllm: str) -> Action:
    """Return the move of the framework to a release that runs with a vLLM."""
    name = framework.replace("_", "-")
    if releases is None:
        return Action(ActionKind.FRAMEWORK, f"a release of {name} that runs with vLLM {vllm}")
    name = releases.of or name
    if releases.newest is not None and releases.newest.is_devrelease:
        return Action(ActionKind.FRAMEWORK, f"{name} {releases.oldest}")
    until = f", before {releases.newest}" if releases.newest is not None else ""
    return Action(ActionKind.FRAMEWORK, f"{name} {releases.oldest} or later{until}")
