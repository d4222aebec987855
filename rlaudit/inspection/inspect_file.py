"""One file, from text to findings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.configs.source import Source
from rlaudit.inspection.files import TextFile
from rlaudit.inspection.read_configs import Bug, Unreadable, read_configs, recognise
from rlaudit.inspection.rendering_here import PinnedBefore, pinned_transformers, renders
from rlaudit.inspection.so_today import with_today
from rlaudit.inspection.versions import Versions, choose
from rlaudit.layers import Layer
from rlaudit.rules.audit.audit import Audit, audit_of
from rlaudit.rules.audit.finding import Finding
from rlaudit.rules.audit.rule import Rule
from rlaudit.settings.place import Place
from rlaudit.settings.rollout_config import Origin, RolloutConfig, Setting
from rlaudit.vllm.machine import NPU, ROCM, Machine

# Each takes some 30 ms; a file that sets up more of them is generated.
MOST_ENGINES = 100
_VARIABLES = {"VLLM_ASCEND_": NPU, "VLLM_ROCM_": ROCM}
# As the registries spell them: quay.io/ascend/vllm-ascend, rocm/vllm, vllm/vllm-openai-rocm.
_NAMED = (
    (NPU, re.compile(r"npu|(?:[\w.:-]+/)*(?:ascend/[\w.-]+|vllm-ascend)(?:[:@].*)?")),
    (ROCM, re.compile(r"(?:[\w.:-]+/)*(?:rocm/[\w.-]+|vllm-(?:openai-)?rocm)(?:[:@].*)?")),
)
# Words by which a file may be for such a device.
_WORDS = (
    (NPU, re.compile(r"\b(?:torch_npu|vllm[-_]ascend|(?:VLLM_)?ASCEND_\w+|HCCL_\w+)\b|(?<![\w.-])npu(?![\w.:-])")),
    (ROCM, re.compile(r"\b(?:rocm|(?:VLLM_|HIP_|PYTORCH_)?ROCM_\w+|HIP_VISIBLE_DEVICES(?==))\b")),
)


@dataclass(frozen=True, eq=False)
class Context:
    """What is the same for every file."""

    rules: Mapping[str, Rule]
    dialects: Mapping[str, Dialect]
    machine: Machine
    # Versions of the command line, None if it names none.
    before: Version | None = None
    after: Version | None = None
    # Whether `machine` holds for every config, also for one that names another device.
    machine_known: bool = field(default=False, kw_only=True)
    # The model of the command line, None if it names none.
    model: str | None = field(default=None, kw_only=True)
    # Pins of the tree before a bump, None if there is none.
    bumped: PinnedBefore | None = field(default=None, kw_only=True)

    def given(self, config: RolloutConfig) -> RolloutConfig:
        """Return a config with the model of the command line, if that names one."""
        if self.model is None:
            return config
        return replace(config, model=Setting("model", self.model, None, Origin.OVERRIDE), trees=None)


@dataclass(frozen=True, eq=False)
class InspectedConfig:
    """One rollout engine with the findings of the rules."""

    framework: Dialect
    audit: Audit
    findings: tuple[Finding, ...]
    # What the same rules find before the move; empty if nothing moves.
    before_the_move: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class InspectedFile:
    """One inspected file."""

    file: TextFile
    # None if it holds no config.
    versions: Versions | None = None
    configs: tuple[InspectedConfig, ...] = ()
    not_seen: tuple[str, ...] = ()
    bugs: tuple[Bug, ...] = ()
    # Why it could not be parsed, else empty.
    unreadable: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all configs by place, each once."""
        findings = {finding: None for config in self.configs for finding in config.findings}
        return tuple(sorted(findings, key=_by_place))


@dataclass(frozen=True)
class Device:
    """A machine that a config chooses."""

    machine: Machine
    # The sentence that names what chooses it.
    sentence: str


def inspect_file(
    file: TextFile, context: Context, versions: Versions | None = None, today: Sequence[RolloutConfig] = ()
) -> InspectedFile:
    """Recognise, read and audit.

    versions: overrules the versions around the file. today: the configs that run before the migration, engine by
    engine, if they are not in this text: a fix does not change what runs today.
    """
    try:
        recognised, bugs = recognise(file.source, context.dialects)
        if not recognised:
            return InspectedFile(file, bugs=bugs)
        release, ran_on = _recorded(file.source)
        versions = versions or choose(context.before, context.after, file.path, file.source.text, release)
        engines = read_configs(file.source, recognised, (versions.before, versions.after))
        pins, line = pinned_transformers(file.source, versions, context.bumped), renders(file.source)
    except Unreadable as error:
        return InspectedFile(file, unreadable=str(error))
    configs = []
    devices = []
    failures = [*bugs, *engines.bugs]
    runs = today if len(today) == len(engines.pairs) else [pair.before for pair in engines.pairs]
    for pair, before in list(zip(engines.pairs, runs, strict=True))[:MOST_ENGINES]:
        machine = context.machine if context.machine_known else ran_on
        device = device_of(pair.after) if machine is None else None
        machine = machine or (context.machine if device is None else device.machine)
        try:
            old, new = (
                replace(context.given(config), transformers=pin, renders=line)
                for config, pin in zip((before, pair.after), pins, strict=True)
            )
            audit = audit_of(old, new, (versions.before, versions.after), machine)
        except Exception as error:
            failures.append(Bug(file.path, f"resolving the settings of {pair.dialect.title}", error))
            continue
        findings, before_the_move, failed = run_rules(audit, tuple(context.rules.values()))
        failures += failed
        configs.append(InspectedConfig(pair.dialect, audit, findings, before_the_move))
        if device is not None:
            devices.append(device.sentence)
    left = len(engines.pairs) - MOST_ENGINES
    further = (f"{file.path}: {left} engines after the first {MOST_ENGINES} were not inspected",) if left > 0 else ()
    if configs and not devices and not context.machine_known:
        devices += of_other_devices(file.source)
    not_seen = (*engines.not_seen, *further, *dict.fromkeys(devices))
    return InspectedFile(file, versions, tuple(configs), not_seen, tuple(failures))


def _recorded(source: Source) -> tuple[Version | None, Machine | None]:
    """Return the release that ran, and the machine that it ran on, as far as they are recorded."""
    return (source.release, source.machine) if isinstance(source, RecordedSource) else (None, None)


def run_rules(audit: Audit, rules: Sequence[Rule]) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[Bug, ...]]:
    """Return the findings of the rules, what they find before the move, and a bug for each rule that failed."""
    findings: list[Finding] = []
    before_the_move: list[Finding] = []
    bugs: list[Bug] = []
    unmoved = Audit(audit.before, audit.before)
    of_one_file = audit.before.config.path == audit.after.config.path
    for rule in rules:
        if rule.layer is Layer.SEMANTIC and not audit.generates:
            continue
        try:
            moved = tuple(rule.check(audit))
            today = tuple(rule.check(unmoved)) if audit.migrates else ()
        except Exception as error:
            bugs.append(Bug(audit.config.path, f"rule {rule.name}", error))
            continue
        findings += with_today(moved, today, rule, of_one_file=of_one_file) if audit.migrates else moved
        before_the_move += today
    return tuple(findings), tuple(before_the_move), tuple(bugs)


def _by_place(finding: Finding) -> tuple[str, int, int, int, str, str]:
    place = finding.place
    return place.path, place.line, place.column, -finding.severity.rank, finding.rule, finding.message


def device_of(config: RolloutConfig) -> Device | None:
    """Return the device that a config chooses for its engine; None if nothing certain chooses, or two choices disagree.

    An image chooses, the framework's option for the device, and variables that only vLLM's code for one of these
    devices reads, exported to this engine under no condition. A probe, a branch, a name or another word of the file
    is only reported, and the engine is judged by CUDA's defaults. What vLLM's platform decides on such a device is not
    read here.
    """
    choices = list(_choices(config))
    if len({machine.platform for machine, _, _ in choices}) != 1:
        return None
    machine, place, clue = choices[0]
    return Device(
        machine, f"{place}: {clue} is of {machine.name}: what vLLM's platform for it decides is not read here"
    )


def _choices(config: RolloutConfig) -> Iterator[tuple[Machine, Place, str]]:
    """Yield each chosen machine with the place and the word that choose it."""
    for setting in (config.device, config.engine.get("device")):
        if setting is not None and setting.place is not None and isinstance(setting.value, str):
            for machine, names in _NAMED:
                if names.fullmatch(setting.value):
                    yield machine, setting.place, setting.value
    for name, setting in config.environment.items():
        # Whether a Python program runs the function, or the `try`, that sets a variable is not read.
        if setting.known and setting.place is not None and not setting.place.path.endswith(".py"):
            for prefix, machine in _VARIABLES.items():
                if name.startswith(prefix):
                    yield machine, setting.place, name


def of_other_devices(source: Source) -> Iterator[str]:
    """Yield a sentence for each device that a file names outside of comments without choosing it."""
    for machine, words in _WORDS:
        for match in words.finditer(source.text):
            begun = source.text.rfind("\n", 0, match.start()) + 1
            if not re.match(r"(?:.*\s)?#", source.text[begun : match.start()]):
                line = source.text.count("\n", 0, begun) + 1
                yield (
                    f"{source.path}:{line}: what runs on {machine.name} ({match.group()}): nothing certain chooses "
                    f"that platform, so CUDA is assumed (--platform {machine.platform} chooses it)"
                )
                break
