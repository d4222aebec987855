"""How new weights come into a running vLLM, and whether cached prefixes outlive them.

What each framework does, by its release and vLLM's, is a fact of its dialect.
"""

from rlaudit.rules.audit.audit import Audit, Side
from rlaudit.settings.trainer_facts import UpdatePath, WeightUpdates
from rlaudit.unknown import Unknown


def update_path(side: Side) -> UpdatePath | Unknown | None:
    """Return the path; None unless the config says that weights are updated."""
    transfer = side.value("weight_transfer_config")
    if transfer is not None and not isinstance(transfer, Unknown):
        # update_weights of vLLM's own engines for weight transfer (vllm/v1/worker/gpu_worker.py 0.16.0:985).
        return UpdatePath.RELOADED
    if side.config.facts.weight_updates in (None, WeightUpdates.NONE):
        return None
    if side.value("enable_lora") is True:
        return None  # adapters are exchanged, and the weights below them stay
    called = side.config.facts.update_calls
    if isinstance(called, list):
        return _path_of_calls(called)
    path = side.config.facts.update_path
    if path is not None:
        return path
    reason = f"how {side.config.framework} loads new weights into vLLM {side.version} is not known"
    return Unknown(reason, tuple(UpdatePath))


def _path_of_calls(methods: list[str]) -> UpdatePath | Unknown:
    """Return the path by the recorded methods. A worker's steps after `load_weights` are not recorded."""
    # Reading recordings costs start-up time that files should not pay.
    from rlaudit.recording.weight_updates import MOVING

    if MOVING.intersection(methods):
        return UpdatePath.RELOADED
    if "load_weights" in methods:
        return Unknown("what follows load_weights is not recorded", (UpdatePath.LOADED, UpdatePath.PROCESSED))
    return Unknown(f"what {', '.join(methods)} does with weights is not recorded", tuple(UpdatePath))


def updates(audit: Audit) -> str | None:
    """Return a clause with how weights are updated; None unless the config says that they are."""
    when = audit.config.facts.weight_updates
    if when in (None, WeightUpdates.NONE):
        return None
    return "weights are updated" if isinstance(when, Unknown) else f"weights are updated {when}"


def cleaned(audit: Audit) -> bool | Unknown | None:
    """Return whether cached prefixes of old weights are kept out of use; None if the config does not say.

    Each of three things suffices: a reset with the update, a pause that clears the cache, a salt that changes with the
    policy. If one of them is unknown, so is the answer.
    """
    facts = audit.config.facts
    means = (facts.resets_prefix_cache, facts.salts_prefix_cache, facts.pause_clears_cache)
    if any(used is True for used in means):
        return True
    reasons = dict.fromkeys(used.reason for used in means if isinstance(used, Unknown))
    if reasons:
        return Unknown("; ".join(reasons))
    return False if facts.resets_prefix_cache is False else None
