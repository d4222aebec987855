"""One file, from text to findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import Version

from rlaudit.configs.dialect import Dialect
from rlaudit.configs.recorded_source import RecordedSource
from rlaudit.configs.rollout_config import RolloutConfig
from rlaudit.configs.source import Source
from rlaudit.inspection.already_so import told_as_it_is
from rlaudit.inspection.audit import Audit, Rule, audit_of
from rlaudit.inspection.device import device_of, of_other_devices
from rlaudit.inspection.files import TextFile
from rlaudit.inspection.finding import Finding
from rlaudit.inspection.read_configs import Bug, Unreadable, documents_of, read_all, recognise
from rlaudit.inspection.versions import Versions, choose
from rlaudit.layers import Layer
from rlaudit.vllm.machine import Machine

# Each takes some 30 ms; a file that sets up more of them is generated.
MOST_ENGINES = 100


@dataclass(frozen=True, eq=False)
class Context:
    """What is the same for every file. before, after: versions of the command line, None where it says none.
    machine_known: whether `machine` holds for every config, whatever device that says it is for.
    """

    rules: Mapping[str, Rule]
    dialects: Mapping[str, Dialect]
    machine: Machine
    before: Version | None = None
    after: Version | None = None
    machine_known: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class InspectedConfig:
    """One rollout engine and what the rules found in it."""

    framework: Dialect
    audit: Audit
    findings: tuple[Finding, ...]


@dataclass(frozen=True, eq=False)
class InspectedFile:
    """One file. versions: None where it holds no config. unreadable: why it could not be parsed, else empty."""

    file: TextFile
    versions: Versions | None = None
    configs: tuple[InspectedConfig, ...] = ()
    not_seen: tuple[str, ...] = ()
    bugs: tuple[Bug, ...] = ()
    unreadable: str = ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of all its configs, by place; what two configs share is said once."""
        found = {finding: None for config in self.configs for finding in config.findings}
        return tuple(sorted(found, key=_by_place))


def inspect_file(
    file: TextFile, context: Context, versions: Versions | None = None, today: Sequence[RolloutConfig] = ()
) -> InspectedFile:
    """Recognise, read and audit. `versions` overrules what the surroundings of the file say. today: what runs before
    the migration, engine by engine, where that is not this text: a fix does not change what runs today.
    """
    try:
        recognised, bugs = recognise(file.source, context.dialects)
        documents, others = documents_of(file.source, context.dialects)
        bugs += others
        if not recognised and not documents:
            return InspectedFile(file, bugs=bugs)
        release, ran_on = _recorded(file.source)
        versions = versions or choose(context.before, context.after, file.path, file.source.text, release)
        read = read_all([(file.source, recognised), *documents], (versions.before, versions.after))
    except Unreadable as error:
        return InspectedFile(file, unreadable=str(error))
    configs = []
    devices = []
    failures = [*bugs, *read.bugs]
    runs = today if len(today) == len(read.pairs) else [pair.before for pair in read.pairs]
    for pair, before in list(zip(read.pairs, runs, strict=True))[:MOST_ENGINES]:
        known = context.machine if context.machine_known else ran_on
        device = device_of(pair.after) if known is None else None
        machine = known or (context.machine if device is None else device.machine)
        try:
            audit = audit_of(before, pair.after, (versions.before, versions.after), machine)
        except Exception as error:
            failures.append(Bug(file.path, f"resolving the settings of {pair.dialect.title}", error))
            continue
        found, failed = run_rules(audit, tuple(context.rules.values()))
        failures += failed
        configs.append(InspectedConfig(pair.dialect, audit, found))
        if device is not None:
            devices.append(device.said)
    left = len(read.pairs) - MOST_ENGINES
    more = (f"{file.path}: {left} more engines after the first {MOST_ENGINES}",) if left > 0 else ()
    if configs and not devices and not context.machine_known:
        devices += of_other_devices(file.source)
    said = (*read.not_seen, *more, *dict.fromkeys(devices))
    return InspectedFile(file, versions, tuple(configs), said, tuple(failures))


def _recorded(source: Source) -> tuple[Version | None, Machine | None]:
    """The release that ran, and the machine that it ran on, as far as they are recorded."""
    return (source.release, source.machine) if isinstance(source, RecordedSource) else (None, None)


def run_rules(audit: Audit, rules: Sequence[Rule]) -> tuple[tuple[Finding, ...], tuple[Bug, ...]]:
    """What the rules say; one that fails is reported and the others run on."""
    findings: list[Finding] = []
    bugs: list[Bug] = []
    for rule in rules:
        if rule.layer is Layer.SEMANTIC and not audit.generates:
            continue
        try:
            findings += told_as_it_is(rule, audit, tuple(rule.check(audit)))
        except Exception as error:
            bugs.append(Bug(audit.config.path, f"rule {rule.name}", error))
    return tuple(findings), tuple(bugs)


def _by_place(finding: Finding) -> tuple[str, int, int, int, str, str]:
    place = finding.place
    return place.path, place.line, place.column, -finding.severity.rank, finding.rule, finding.message
