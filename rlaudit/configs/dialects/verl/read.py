"""verl: `actor_rollout_ref.rollout` in Hydra YAML, as overrides on the command line of a script, or in a Python dict.

No config names its release of verl, and releases differ in what reaches the engine: v0.6.0 to v0.9.0 skip a written
`false`. `release.py` says which keys tell the release; where none does, the value is unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.verl.engine import engine_arguments, overridden_generation
from rlaudit.configs.dialects.verl.release import FILES, FILES_IN_PROCESS, Release, is_whole, release_of
from rlaudit.configs.dialects.verl.trainer import trainer_facts
from rlaudit.configs.dialects.verl.write import unless_refused, writer_for
from rlaudit.configs.draft import MANDATORY, Draft, arriving, by_file, known, unwritten
from rlaudit.configs.elsewhere import left_open
from rlaudit.configs.framework_source.against_copy import hold_against
from rlaudit.configs.hydra_defaults import composed, with_defaults
from rlaudit.configs.hydra_dotlist import Overridden, overridden, untold
from rlaudit.configs.hydra_program import started_from
from rlaudit.configs.merging import mapping_of, merged, nested, reread
from rlaudit.configs.program import program_of, program_source
from rlaudit.configs.ray_job import PREFIXES, take_job_environment, take_program_environment
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.second_engines import take_second_engines
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.edit import Edit
from rlaudit.configs.syntax.node import Node, Unknown

if TYPE_CHECKING:
    from rlaudit.configs.syntax.shell_command import Command


ROLLOUT = "actor_rollout_ref"
_OWN = "verl/trainer/config/ppo_trainer.yaml"
_GROUP = "verl.workers.config.RolloutConfig"
# rollout's field -> SamplingParams, with the default of verl's rollout.yaml (v0.4.1 to 0.9.1)
_SAMPLING: dict[str, Any] = {"temperature": 1.0, "top_k": -1, "top_p": 1.0}
# What turns on an engine of its own, for rewards or a teacher.
# rollout.name of verl for vLLM, to its main of 2026-08; a copy may have a class of its own.
_ENGINES = {"vllm", "vllm_spmd"}
# Its own programs: recipes (recipe.dapo.main_dapo) lie beside the package.
_OWN_MODULES = ("verl.", "recipe.", "rllm.")
_SECOND_ENGINES = (("reward_model", "enable"), ("reward", "reward_model", "enable"), ("distillation", "enabled"))
_FURTHER = {"repetition_penalty": "repetition_penalty", "ignore_eos": "ignore_eos"}


@dataclass(frozen=True, eq=False)
class Read:
    """A tree rooted where verl's is. own: without what it inherits. inherits: verl's defaults stand behind it."""

    root: Node
    own: Node
    inherits: bool
    command: "Command | None"
    parts: tuple[str, ...]
    missing: tuple[str, ...]


_OPTIONS = (
    "actor_rollout_ref.actor.tis_imp_ratio_cap",
    "actor_rollout_ref.actor.use_rollout_log_probs",
    "actor_rollout_ref.rollout.n", "actor_rollout_ref.rollout.name", "actor_rollout_ref.rollout.mode",
    "actor_rollout_ref.rollout.calculate_log_probs", "actor_rollout_ref.rollout.val_kwargs",
    "actor_rollout_ref.rollout.free_cache_engine", "async_training",
    *(f"actor_rollout_ref.actor.{name}" for name in (
        "clip_ratio", "clip_ratio_low", "clip_ratio_high", "clip_ratio_c", "use_kl_loss", "kl_loss_coef",
        "kl_loss_type", "loss_agg_mode", "policy_loss", "ppo_epochs", "ppo_mini_batch_size", "entropy_coeff",
        "loss_scale_factor",
    )),
    "algorithm",
    "data.train_batch_size", "data.max_prompt_length", "data.max_response_length", "data.truncation",
    "data.return_raw_chat",
)  # fmt: skip


def recognise(source: Source) -> bool:
    """Whether `actor_rollout_ref.rollout` is set or inherited, or the file is verl's own rollout group."""
    text = source.text
    if ROLLOUT not in text and _GROUP not in text and "defaults" not in text:
        return False
    if source.suffix == ".py" and _dictionaries(source):
        return True
    root = with_defaults(source)
    if root is not None and _rollout(root) is not None:
        return True
    return f"{ROLLOUT}.rollout." in text and bool(overridden(source, f"{ROLLOUT}.rollout."))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """One engine per config; a script may start several."""
    found = (rollout_config("verl", one, source, vllm) for one in reads(source))
    return tuple(config for config in found if config is not None)


# Asked under each version; what a command starts from is composed once.
@lru_cache(maxsize=4)
def reads(source: Source) -> tuple[Read, ...]:
    """Every config of the file as a tree rooted where verl's is."""
    own = mapping_of(source)
    whole = with_defaults(source)
    if own is not None and whole is not None and _rollout(whole) is not None:
        config = composed(source)
        if config is None:
            return ()
        root, mine = _rooted(config.root), own if _rollout(own) is None else _rooted(own)
        listed = own.get("defaults") is not None
        inherits = bool(config.missing) or not (listed or is_whole(root.get(ROLLOUT, "rollout")))
        return (Read(root, mine, inherits, None, config.parts, config.missing),)
    dictionaries = (_of_dictionary(source, root) for root in _dictionaries(source))
    return (*dictionaries, *(_of_command(source, one) for one in overridden(source, f"{ROLLOUT}.rollout.")))


def _dictionaries(source: Source) -> tuple[Node, ...]:
    """Python's dictionaries with verl's keys, which a program puts on top of verl's own config."""
    try:
        found = source.dictionaries(ROLLOUT)
    except (ValueError, RecursionError):
        return ()
    return tuple(root for root in found if isinstance(root.value, dict) and _rollout(root) is not None)


def _of_dictionary(source: Source, root: Node) -> Read:
    checkout = FILES.checkout(source)
    base = checkout.file(_OWN) if checkout is not None else None
    config = composed(base) if base is not None else None
    if base is None or config is None:
        return Read(root, root, True, None, (), ("verl's own config, on which the program puts this dictionary",))
    whole = reread(merged(config.root, root))
    return Read(whole, root, bool(config.missing), None, (base.path, *config.parts), config.missing)


def _of_command(source: Source, one: Overridden) -> Read:
    base = started_from(source, one)
    if base is None or _rollout(base.root) is None:
        return Read(one.root, one.root, True, one.command, (), ("the config that the command starts from",))
    return Read(base.root, one.root, bool(base.missing), one.command, base.parts, base.missing)


def _rollout(root: Node) -> Node | None:
    inside = root.get(ROLLOUT, "rollout")
    if inside is not None and isinstance(inside.value, dict):
        return inside
    target: Any = root.get("_target_")
    return root if target is not None and target.value == _GROUP else None


def _rooted(root: Node) -> Node:
    return root if root.get(ROLLOUT) is not None else nested((ROLLOUT, "rollout"), root)


def rollout_config(framework: str, one: Read, source: Source, vllm: Version) -> RolloutConfig | None:
    """None where another engine than vLLM is chosen."""
    rollout = one.root.get("actor_rollout_ref", "rollout")
    # A copy of verl with an engine class of its own calls it vllm_with_tool or the like.
    if rollout is None or not str(known(rollout.get("name"), "vllm")).startswith(("vllm", "???")):
        return None
    draft = Draft(framework, source.path, parts=one.parts)
    checkout = FILES.checkout(source)
    release = release_of(source, one.root, vllm, checkout)
    draft.releases = release.span
    engine_arguments(draft, one.root, vllm, release, inherits=one.inherits)
    _sampling(draft, rollout, release, inherits=one.inherits)
    trainer_facts(draft, one.root, vllm, release, inherits=one.inherits)
    draft.list_options(one.root, *_OPTIONS)
    device = one.root.get("trainer", "device")
    draft.device = by_file("trainer.device", device) if device is not None else None
    draft.list_rest(rollout, f"{ROLLOUT}.rollout", lambda path: checkout is not None and checkout.has(path))
    if any(known(one.root.get(*switch)) for switch in _SECOND_ENGINES):
        take_second_engines(draft, one.root, "actor_rollout_ref", "actor", "critic", "rollout")
    length = rollout.get("response_length") or one.root.get("data", "max_response_length")
    if not release.in_process:
        overridden_generation(draft, arriving(length) if length is not None else None, release)
    _environment(draft, source, rollout, one.command)
    hold_against(draft, FILES_IN_PROCESS if release.in_process else FILES, checkout, vllm)
    _unread(draft, one)
    if release.in_process is None:
        draft.not_seen.append("whether the engine is a server or in the trainer's process: v0.6 knows both")
    own = one.own.get("actor_rollout_ref", "rollout")
    write: Callable[[str, Any], tuple[Edit, ...] | None] = unwritten
    if own is not None or one.command is not None:
        write = unless_refused(draft, release, writer_for(own or rollout, one.command, source, release))
    home = own or one.own
    config = draft.done(
        model=one.root.get("actor_rollout_ref", "model", "path"),
        offline=release.in_process is True,
        place=one.command.place if one.command is not None else (home.key or home.place),
        write=write,
    )
    return left_open(config, rollout.get("engine_kwargs", "vllm"), "engine_kwargs.vllm")


def _sampling(draft: Draft, rollout: Node, release: Release, *, inherits: bool) -> None:
    for name, default in _SAMPLING.items():
        draft.sampling.written_or(
            name, rollout.get(name), default if inherits else None, f"rollout.{name} of verl's rollout.yaml"
        )
    for key, name in _FURTHER.items():
        draft.sampling.written_or(name, rollout.get(key))
    _never_sent(draft, rollout, release)
    greedy = rollout.get("do_sample")
    if greedy is not None and greedy.value is False:
        draft.sampling.by_file("temperature", greedy, 0, "do_sample: false is greedy")
    draft.sampling.unless_set("repetition_penalty", 1.0, "verl sends it with each request")


def _never_sent(draft: Draft, rollout: Node, release: Release) -> None:
    """Parameters that the server's requests do not name; the in-process engine takes any field that is called so."""
    for name in ("min_p", "presence_penalty", "frequency_penalty"):
        node = rollout.get(name)
        if node is None or node.value is None or release.in_process is False:
            note = "verl builds SamplingParams without it, and a SamplingParams object takes no generation_config.json"
            draft.sampling.by_code(name, 0.0, note)
        elif release.in_process:
            draft.sampling.by_file(name, node, note="vllm_rollout_spmd.py copies every field of that name")
        else:
            reason = f"an in-process engine takes rollout.{name}, verl's server does not"
            draft.sampling.by_file(name, node, Unknown(reason), reason)


def _environment(draft: Draft, source: Source, rollout: Node, command: "Command | None") -> None:
    full = rollout.get("full_determinism")
    if full is not None:
        value = arriving(full)
        note = "verl vllm_async_server.py:151: rollout.full_determinism"
        if isinstance(value, Unknown) or value is True:
            told = value if isinstance(value, Unknown) else "1"
            draft.environment.by_file("VLLM_BATCH_INVARIANT", full, told, note)
    if command is None:
        return
    if not take_job_environment(draft, source, command):
        for name, node in command.variables.items():
            if name.startswith(PREFIXES):
                draft.environment.by_file(name, node)
    program = program_source(source, command)
    if program is not None:
        take_program_environment(draft, program)


def _unread(draft: Draft, one: Read) -> None:
    for missing in one.missing:
        draft.not_seen.append(f"{missing}: not beside this file; verl's own defaults are assumed where releases agree")
    draft.not_seen += untold(one.command) if one.command is not None else ()
    name = one.root.get("actor_rollout_ref", "rollout", "name")
    if name is None or isinstance(name.value, Unknown):
        reason = "rollout.name is not in this file" if name is None else name.value.reason
        draft.not_seen.append(f"the rollout engine: {reason}; it is read as vLLM's")
    elif str(name.value) not in {*_ENGINES, MANDATORY}:
        draft.not_seen.append(f"the engine class of rollout.name {name.value}, which no release of verl has")
    program = program_of(one.command) if one.command is not None else ""
    if program and not program.startswith(_OWN_MODULES):
        draft.not_seen.append(f"what {program} sets by itself, a program on top of {draft.framework}")
    servers = one.root.get("actor_rollout_ref", "rollout", "custom")
    if servers is not None and servers.value:
        draft.not_seen.append("rollout.custom: its keys go to code of the user's own")


DIALECT = Dialect("verl", "verl", 10, recognise, read)
