"""Where AReaL's own source says what it does: the fields of vLLMConfig become flags of the server, false ones none."""

from packaging.version import Version

from rlaudit.configs.draft import Draft
from rlaudit.configs.framework_source.bindings import Bound, defaults_in
from rlaudit.configs.framework_source.checkout import Checkout
from rlaudit.configs.framework_source.questions import keywords_of
from rlaudit.configs.framework_source.tell import FrameworkSource, ask_facts
from rlaudit.configs.rollout_config import Origin
from rlaudit.configs.syntax.node import Unknown
from rlaudit.vllm.lifetimes import lifetime

_CLI_ARGS = "areal/api/cli_args.py"
_SERVER = ("areal/engine/vllm_ext/areal_vllm_server.py", "areal/thirdparty/vllm/areal_vllm_server.py")
# What build_args adds to the fields.
_OF_EVERY_RELEASE = {"load_format", "trust_remote_code"}
SOURCE = FrameworkSource(
    package="areal",
    engine=_SERVER,
    facts={"pause_arguments": keywords_of("pause_generation", *_SERVER)},
    marks=(_CLI_ARGS,),
)


def tell_areal(draft: Draft, checkout: Checkout | None, vllm: Version) -> None:
    """What the class and the server of the checkout decide in place of the table, where it is there."""
    source = checkout.file(_CLI_ARGS) if checkout is not None else None
    fields = defaults_in(source, "vLLMConfig") if source is not None else {}
    if checkout is None or not fields:
        return
    ask_facts(draft, SOURCE, checkout)
    for name, setting in list(draft.engine.items()):
        if setting.origin is Origin.FRAMEWORK and name not in _OF_EVERY_RELEASE:
            del draft.engine[name]
    for name, field in fields.items():
        argument = name.removeprefix("no_")
        if argument not in draft.engine and lifetime("engine", argument) is not None:
            _default(draft, argument, field, vllm, negated=argument != name)


def has_field(checkout: Checkout | None, name: str) -> bool:
    """Whether vLLMConfig of the checkout takes a key; without one, every release is asked for."""
    source = checkout.file(_CLI_ARGS) if checkout is not None else None
    fields = defaults_in(source, "vLLMConfig") if source is not None else {}
    return not fields or name in fields


def _default(draft: Draft, name: str, field: Bound, vllm: Version, *, negated: bool) -> None:
    written = field.constant
    if written in (None, False, "") or isinstance(written, Unknown):
        draft.decided[name] = f"{field.where}, which passes no flag"
        return
    draft.engine.by_code(name, False if negated else written, field.where)
    draft.decided[name] = field.where
