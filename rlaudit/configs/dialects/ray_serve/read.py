"""Ray Serve's `LLMConfig(engine_kwargs=...)`, in Python and in YAML (`llm_configs`), and Ray Data's processor config.

engine_kwargs go to AsyncEngineArgs as they are; a key that neither it nor the API server's arguments have stops the
start. Read at 0206cc4 (ray/llm/_internal/serve/engines/vllm/vllm_models.py).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.dialects.vllm.flags import take_variables
from rlaudit.configs.draft import Draft, known
from rlaudit.configs.elsewhere import left_open
from rlaudit.configs.mapping_writer import one_mapping, plain_spelling
from rlaudit.configs.merging import mapping_of
from rlaudit.configs.python_kwargs import has_argument
from rlaudit.configs.rollout_config import Loss, RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.node import Node, entries
from rlaudit.vllm.catalogue import Catalogue

if TYPE_CHECKING:
    from rlaudit.configs.syntax.place import Place

_MODELS = "Ray vllm_models.py (0206cc4)"
_CALLS = ("LLMConfig", "vLLMEngineProcessorConfig")
_NOT_HERE = ("model", "served_model_name")


def recognise(source: Source) -> bool:
    """Whether the file holds an LLMConfig, as a call or as a mapping with `model_loading_config`."""
    text = source.text
    if source.suffix == ".py":
        return "engine_kwargs" in text and any(f"{name}(" in text for name in _CALLS) and bool(_calls(source))
    return "model_loading_config" in text and any(True for _ in _mappings(mapping_of(source)))


def read(source: Source, vllm: Version) -> tuple[RolloutConfig, ...]:
    """Every model that is served."""
    if source.suffix == ".py":
        return tuple(_config(source, arguments, place, vllm) for arguments, place in _calls(source))
    found = _mappings(mapping_of(source))
    return tuple(_config(source, node, node.key or node.place, vllm) for node in found)


def _calls(source: Source) -> "list[tuple[Node, Place]]":
    try:
        found = source.calls(_CALLS)
    except (ValueError, RecursionError):
        return []
    return [
        (Node(dict(call.arguments), call.place), call.place) for call in found
        if "engine_kwargs" in call.arguments and not call.origin.startswith("vllm")
    ]  # fmt: skip


def _mappings(root: Node | None) -> Iterator[Node]:
    """Mappings with `model_loading_config`, wherever they stand. Iterative, so that nesting costs no stack."""
    todo = [root] if root is not None else []
    while todo:
        node = todo.pop(0)
        if node.get("model_loading_config") is not None:
            yield node
            continue
        todo += [child for _, child in node.items()]
        todo += node.elements()


def _config(source: Source, given: Node, place: "Place", vllm: Version) -> RolloutConfig:
    draft = Draft("ray_serve", source.path)
    kwargs = given.get("engine_kwargs")
    frontend = Catalogue.at(vllm).frontend
    for key, node in entries(kwargs):
        if key in _NOT_HERE:
            draft.lose(key, node, Loss.REFUSED, f"ValueError at start: model_loading_config says it ({_MODELS})")
        elif key == "disable_log_requests":
            draft.lose(key, node, Loss.OVERRULED, f"Ray turns it into enable_log_requests ({_MODELS})")
        elif has_argument(key, vllm):
            draft.engine.by_file(key, node)
        elif key not in frontend:
            draft.lose(key, node, Loss.REFUSED, f"ValueError at start: vLLM {vllm} has no argument {key} ({_MODELS})")
    draft.engine.by_code("distributed_executor_backend", "ray", f"{_MODELS}: any other one is refused")
    variables = given.get("runtime_env", "env_vars")
    take_variables(draft, dict(entries(variables)))
    model = given.get("model_loading_config", "model_source") or given.get("model_loading_config", "model_id")
    scaling = given.get("deployment_config", "autoscaling_config", "max_replicas")
    count = given.get("deployment_config", "num_replicas") or scaling
    if isinstance(known(count), int):
        draft.not_seen.append(f"how requests are spread over {known(count)} replicas")
    draft.not_seen.append("sampling parameters: they come with every request, from a client that is not in this file")
    write = one_mapping(kwargs, plain_spelling, source.text)
    config = draft.done(model=model or given.get("model_source"), place=place, write=write)
    return left_open(config, kwargs, "engine_kwargs")


DIALECT = Dialect("ray_serve", "Ray Serve LLM", 10, recognise, read)
