"""Values of vLLM's production-stack chart, and its VLLMRuntime resource: camelCase keys and `extraArgs`.

The chart writes `--enable-x` or `--no-enable-x` for prefix caching in any case, for chunked prefill where the key is
there; the operator does so for both. So a missing `enablePrefixCaching` is off, whatever vLLM's own default is.
`runner` and `convert` are read since January 2026.
Source: vllm-project/production-stack at 010004e, helm/templates/deployment-vllm-multi.yaml, and at 0f1e829,
operator/internal/controller/vllmruntime_controller.go.
"""

import json
from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from rlaudit.configs.dialects.vllm.flags import FlagReader, take_variables
from rlaudit.configs.dialects.vllm.invocations import listed_variables
from rlaudit.configs.dialects.vllm.server import flag_speller
from rlaudit.configs.draft import Draft
from rlaudit.configs.engine_names import canonical
from rlaudit.configs.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.configs.source import Source
from rlaudit.configs.syntax.command_edits import list_writer
from rlaudit.configs.syntax.expansion import assumptions
from rlaudit.configs.syntax.flags import Flag
from rlaudit.configs.syntax.node import Node, Unknown
from rlaudit.configs.syntax.spelling import Write, scalar_text
from rlaudit.configs.syntax.yaml_edits import yaml_writer
from rlaudit.vllm.catalogue import Catalogue

CHART = "production-stack chart (010004e)"
OPERATOR = "production-stack operator (0f1e829)"
_KEYS = {
    "enableChunkedPrefill", "enablePrefixCaching", "maxModelLen", "dtype", "tensorParallelSize", "maxNumSeqs",
    "gpuMemoryUtilization", "maxLoras", "runner", "convert",
}  # fmt: skip
_MODEL_KEYS = ("enableLoRA", "maxModelLen", "dtype", "maxNumSeqs")
_HANDLED = {"extraArgs", "env", "v0", "v1", "port", "prometheusMultiprocDir"}
_SWITCHES = ("enablePrefixCaching", "enableChunkedPrefill")
_LMCACHE = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}


def is_helm(source: Source) -> bool:
    """Whether `vllmConfig` of a chart's values or of a VLLMRuntime is there. Raises UnreadableText."""
    return "vllmConfig" in source.text and any(True for _ in _specs(source))


def helm_configs(framework: str, source: Source, vllm: Version) -> Iterator[RolloutConfig]:
    """One config for every model of the chart, or for the resource."""
    for spec, operator in _specs(source):
        yield _config(framework, source, spec, vllm, operator=operator)


def _specs(source: Source) -> Iterator[tuple[Node, bool]]:
    for root in source.plain_yaml:
        models = root.get("servingEngineSpec", "modelSpec")
        for spec in models.elements() if models is not None else ():
            if spec.get("vllmConfig") is not None:
                yield spec, False
        kind, spec_of = root.get("kind"), root.get("spec")
        if kind is not None and kind.value == "VLLMRuntime" and spec_of is not None and spec_of.get("vllmConfig"):
            yield spec_of, True


def _config(framework: str, source: Source, spec: Node, vllm: Version, *, operator: bool) -> RolloutConfig:
    draft = Draft(framework, source.path)
    reader = FlagReader(draft, vllm, serve=False)
    settings = spec.get("vllmConfig") or spec
    model = spec.get("model") if operator else spec
    _engine(reader, settings, model or spec, operator=operator)
    extra = settings.get("extraArgs")
    if extra is not None:
        reader.read(extra.elements())
    _environment(draft, spec, settings, operator=operator)
    _cache_server(draft, spec, operator=operator)
    url = (model or spec).get("modelURL")
    place = settings.key or settings.place
    return draft.done(model=url, place=place, write=_writer(settings, source, vllm))


def _engine(reader: FlagReader, settings: Node, model: Node, *, operator: bool) -> None:
    by = OPERATOR if operator else CHART
    for name in _SWITCHES:
        if settings.get(name) is None and (operator or name == "enablePrefixCaching"):
            note = f"{by} passes --no-{canonical(name).replace('_', '-')} where {name} is not set"
            reader.draft.engine.by_code(canonical(name), False, note)
    pairs = [(key, model.get(key)) for key in (_MODEL_KEYS if operator else _MODEL_KEYS[:1])]
    for key, node in (*pairs, *settings.items()):
        if node is None or node.value is None:
            continue
        name = canonical(key)
        if key in _KEYS or key in _MODEL_KEYS:
            _take(reader, name, node)
        elif key not in _HANDLED:
            reader.draft.not_seen.append(f"vllmConfig.{key}: {by} does not read it")


def _take(reader: FlagReader, name: str, node: Node) -> None:
    if isinstance(node.value, bool):
        if name == "enable_lora" and not node.value:
            return
        spelt = name if node.value else f"no_{name}"
        reader.take(Flag(spelt, None, node.place))
    elif isinstance(node.value, dict | tuple) or "{{" in str(node.value):
        # Unquoted, `{{ .Values.dtype }}` is a mapping to YAML.
        templated = Unknown("not one value, but a template or a structure")
        reader.take(Flag(name, Node(templated, node.place, node.key, node.text), node.place))
    elif node.value not in {"", 0}:
        reader.take(Flag(name, Node(str(node.plain()), node.place, node.key, node.text), node.place))


def _environment(draft: Draft, spec: Node, settings: Node, *, operator: bool) -> None:
    first, v0 = settings.get("v1"), settings.get("v0")
    if operator:
        on = first is not None and first.value is True
        place = first.place if first is not None else None
        note = f"{OPERATOR} sets it from vllmConfig.v1, which is false where it is missing"
        written = first.value if first is not None else None
        draft.environment["VLLM_USE_V1"] = Setting(
            "VLLM_USE_V1", "1" if on else "0", written, Origin.FILE if first else Origin.FRAMEWORK, place, note
        )
    elif v0 is not None and str(v0.value) == "1":
        note = f"{CHART} sets it for vllmConfig.v0"
        draft.environment["VLLM_USE_V1"] = Setting("VLLM_USE_V1", "0", v0.value, Origin.FILE, v0.place, note)
    elif first is not None:
        draft.not_seen.append(f"vllmConfig.v1: {CHART} does not read it")
    variables = listed_variables(settings if operator else spec)
    take_variables(draft, variables)
    draft.not_seen += [f"{one}, unless the environment sets it" for one in assumptions(variables.values())]


def _cache_server(draft: Draft, spec: Node, *, operator: bool) -> None:
    enabled = spec.get("lmCacheConfig" if operator else "lmcacheConfig", "enabled")
    if enabled is not None and enabled.value is True:
        note = f"{OPERATOR if operator else CHART} passes --kv-transfer-config for LMCache"
        draft.engine.by_code("kv_transfer_config", dict(_LMCACHE), note)


def _writer(settings: Node, source: Source, vllm: Version) -> Write:
    """Writes the chart's own key where it has one, else a word of `extraArgs`."""
    flag = flag_speller(Catalogue.at(vllm).cli)
    keys = {canonical(key): key for key in _KEYS}
    extra = settings.get("extraArgs")

    def spell(name: str, value: Any) -> tuple[str, str] | None:
        if name in keys:
            return keys[name], scalar_text(value)
        spelt = flag(name, value)
        return None if spelt is None else ("extraArgs", json.dumps([word for word in spelt if word]))

    own = yaml_writer(settings, spell, source.text)
    if extra is None or not extra.elements():
        return own
    more = list_writer(extra.elements(), flag, source.text)
    return lambda name, value: own(name, value) if name in keys else more(name, value)
