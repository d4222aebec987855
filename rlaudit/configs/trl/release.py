"""Which release of TRL reads a config, as far as its keys and the vLLM beside it tell.

No config names the release, but its fields come and go: a key that a release does not have ends the run with an
error, so one written key bounds the release. Fields, defaults and calls were read in the released wheels 0.14.0,
0.15.2, 0.16.1, 0.17.0, 0.18.2, 0.19.1, 0.20.0, 0.21.0, 0.22.2, 0.23.1, 0.24.0, 0.25.1, 0.26.2, 0.27.1, 0.28.0,
0.29.1, 1.0.0 and every minor release from there to 1.16.0; a bound is the minor release in which a field is first or
last seen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from packaging.version import Version

from rlaudit.configs.framework_source.release_here import ReleaseHere
from rlaudit.configs.rollout_config import RefusedPin
from rlaudit.pins.package import Package

TRL = Package(("trl",), ("huggingface/trl",))
# Field of GRPOConfig -> first and last minor release with it; "" is before 0.14, or still there.
FIELDS: Mapping[str, tuple[str, str]] = {
    "vllm_device": ("", "0.17"),
    "vllm_dtype": ("0.15", "0.17"),
    "vllm_max_model_len": ("0.15", "0.17"),
    "vllm_enable_prefix_caching": ("0.16", "0.17"),
    "top_p": ("0.16", ""),
    "top_k": ("0.16", ""),
    "min_p": ("0.16", ""),
    "repetition_penalty": ("0.16", ""),
    "num_iterations": ("0.16", ""),
    "vllm_server_host": ("0.16", ""),
    "vllm_server_port": ("0.16", ""),
    "vllm_server_timeout": ("0.16", ""),
    "vllm_guided_decoding_regex": ("0.16", "0.27"),
    "vllm_mode": ("0.18", ""),
    "vllm_tensor_parallel_size": ("0.18", ""),
    "vllm_server_base_url": ("0.18", ""),
    "steps_per_generation": ("0.18", ""),
    "generation_kwargs": ("0.19", ""),
    "importance_sampling_level": ("0.20", ""),
    "use_transformers_paged": ("0.20", ""),
    "vllm_model_impl": ("0.21", ""),
    "vllm_enable_sleep_mode": ("0.23", ""),
    "vllm_importance_sampling_correction": ("0.23", ""),
    "vllm_importance_sampling_cap": ("0.23", ""),
    "cast_lm_head_to_fp32": ("0.25", ""),
    "chat_template_kwargs": ("0.25", ""),
    "vllm_max_model_length": ("0.26", ""),
    "vllm_importance_sampling_mode": ("0.26", ""),
    "vllm_group_port": ("0.27", ""),
    "vllm_structured_outputs_regex": ("0.27", ""),
    "off_policy_mask_threshold": ("0.27", ""),
    "max_prompt_length": ("", "0.27"),
    "vllm_importance_sampling_clip_max": ("1.6", ""),
    "vllm_importance_sampling_clip_min": ("1.6", ""),
    "scale_rewards": ("0.16", ""),
    "epsilon": ("0.16", ""),
    "epsilon_high": ("0.16", ""),
    "loss_type": ("0.17", ""),
    "mask_truncated_completions": ("0.17", ""),
    "num_completions_to_print": ("0.17", ""),
    "shuffle_dataset": ("0.17", ""),
    "use_liger_loss": ("0.17", "0.27"),
    "wandb_log_unique_prompts": ("0.17", "0.26"),
    "delta": ("0.18", ""),
    "generation_batch_size": ("0.18", ""),
    "top_entropy_quantile": ("0.20", ""),
    "log_unique_prompts": ("0.26", ""),
    "num_generations_eval": ("0.26", ""),
    "use_bias_correction_kl": ("0.26", ""),
    "max_tool_calling_iterations": ("0.27", ""),
    "multi_objective_aggregation": ("0.27", ""),
    "pad_to_multiple_of": ("1.0", ""),
    "router_aux_loss_coef": ("1.7", ""),
    "entropy_coef": ("1.8", ""),
}


# The newest vLLM that the `vllm` extra admits, from a release on. TRL warns of a newer one, and pip refuses it beside
# the extra. Source: Requires-Dist of the wheels; up to 0.23 there is no such limit.
_ADMITS: dict[str, str] = {
    "0.27": "0.12.0", "1.0": "0.17.1", "1.2": "0.18.0", "1.6": "0.19.0", "1.7": "0.23.0", "1.9": "0.25.1",
    "1.10": "0.26.0", "1.11": "0.27.1", "1.13": "0.28.0", "1.14": "0.30.0", "1.15": "0.31.0",
}  # fmt: skip
_DOES_NOT_IMPORT = "TRL up to 0.26 does not import with vLLM 0.12 or later"
_NEVER = Version("1000")


@dataclass(frozen=True)
class Releases:
    """The releases that may read a config. newest: exclusive, None where nothing ends the range. lower, upper: why
    they are the oldest and the newest. importing: the oldest that can import the vLLM, where `oldest` is the first that
    says it goes with it. refused_pin: the pin that is none of them.
    """

    oldest: Version
    newest: Version | None
    lower: str = ""
    upper: str = ""
    importing: Version | None = None
    refused_pin: RefusedPin | None = None

    def since(self, release: str) -> bool | None:
        """Whether `release` or a later one reads it; None where both are possible."""
        if self.oldest >= Version(release):
            return True
        if self.newest is not None and self.newest <= Version(release):
            return False
        return None

    @property
    def impossible(self) -> bool:
        """Whether no release takes all the keys and runs with this vLLM."""
        return self.newest is not None and self.newest <= self.oldest

    def past(self, field: str) -> bool:
        """Whether a field is gone in every release that may read the config."""
        last = FIELDS.get(field, ("", ""))[1]
        return bool(last) and self.oldest >= after(last)

    def past_for_certain(self, field: str) -> bool:
        """Whether it is gone in every release that can import the vLLM, too."""
        last = FIELDS.get(field, ("", ""))[1]
        return self.past(field) and (self.importing or self.oldest) >= after(last)

    def holds(self, release: Version) -> bool:
        """Whether a release is one of them."""
        plain = Version(release.base_version)
        return self.oldest <= plain and (self.newest is None or plain < self.newest)

    def __str__(self) -> str:
        if self.newest is None:
            told = f"TRL {self.oldest} or later"
        elif self.impossible:
            told = "no TRL release that has all of these keys and runs with this vLLM"
        else:
            told = f"TRL {self.oldest} or later, before {self.newest}"
        because = ", ".join(dict.fromkeys(reason for reason in (self.lower, self.upper) if reason))
        return f"{told} ({because})" if because else told


def releases(
    fields: Iterable[str], vllm: Version, colocated: bool, born: str = "0.14", patched: bool = False,
    here: ReleaseHere | None = None,
) -> Releases:  # fmt: skip
    """The releases that take all of `fields` and run with this vLLM. born: first release of the trainer in question.
    patched: whether something (unsloth) makes TRL run with a vLLM that it does not run with by itself. here: the one
    whose source is there, which is the answer, or that is pinned.
    """
    oldest: Version = Version(born)
    newest: Version | None = None
    lower, upper = "", ""
    for field in fields:
        first, last = FIELDS.get(field, ("", ""))
        if first and Version(first) > oldest:
            oldest, lower = Version(first), f"{field} is there since {first}"
        if last and (newest is None or after(last) < newest):
            newest, upper = after(last), f"{field} is gone after {last}"
    takes = Releases(oldest, newest, lower, upper)
    return both(takes, Releases(Version("0"), None) if patched else that_run(vllm, colocated), here)


def both(takes: Releases, runs: Releases, here: ReleaseHere | None) -> Releases:
    """The releases that take what is written and run with the vLLM. here: a source that is there is the answer; a pin
    is where it can be, and one that takes what is written and does not run with the vLLM is refused.
    """
    if here is not None and not here.pinned_at:
        return _only(here)
    lower, upper = max(takes, runs, key=lambda one: one.oldest), min(takes, runs, key=lambda one: one.newest or _NEVER)
    told = Releases(lower.oldest, upper.newest, lower.lower, upper.upper, lower.importing)
    if here is None or not takes.holds(here.version):
        return told
    if replace(runs, oldest=runs.importing or runs.oldest).holds(here.version):
        return _only(here)
    below = _DOES_NOT_IMPORT if runs.importing else runs.lower
    why = runs.upper if here.version >= runs.oldest else below
    return replace(told, refused_pin=RefusedPin(here.pinned_at, f"pins TRL {here.version}: {why}"))


def that_run(vllm: Version, colocated: bool) -> Releases:
    """The releases that run with a vLLM.

    colocated: whether `LLM(...)` is built by the trainer, which passes `logprobs_mode` from 0.24 on; `trl vllm-serve`
    passes it from 0.27 on. vLLM before 0.10.0 does not take it (TypeError). Releases up to 0.15 pass `device`, which
    vLLM 0.10.0 removed (TypeError); up to 0.26 they import GuidedDecodingParams, which 0.12.0 removed (ImportError).
    """
    if vllm >= Version("0.12"):
        imports = Version("0.27")
        admits = next((release for release, newest in _ADMITS.items() if Version(newest) >= vllm), None)
        why = _DOES_NOT_IMPORT
        if admits is None:
            why = f"no TRL release read here admits vLLM {vllm}; this is the newest"
        elif Version(admits) > imports:
            why = f"the vllm extra of TRL admits vLLM {vllm} from {admits} on"
        return Releases(Version(admits or next(reversed(_ADMITS))), None, why, importing=imports)
    if vllm >= Version("0.10"):
        return Releases(Version("0.16"), None, "TRL up to 0.15 passes device, which vLLM 0.10 or later does not take")
    ends = Version("0.24" if colocated else "0.27")
    upper = f"from {ends} on TRL passes logprobs_mode, which vLLM {vllm} does not take"
    return Releases(Version("0"), ends, upper=upper)


def _only(here: ReleaseHere) -> Releases:
    minor = f"{here.version.major}.{here.version.minor}"
    return Releases(Version(minor), after(minor), here.because)


def after(last: str) -> Version:
    """The minor release after the last one with a field."""
    major, minor = (int(part) for part in last.split("."))
    return Version(f"{major}.{minor + 1}")
