"""The known defects of vLLM that engines of a run have: all that `inspect` would be sure of in such a config."""

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from rlaudit.engines.hardware.accelerator import machine_of
from rlaudit.engines.inside.expected_engine import config_of
from rlaudit.laboratory.studies.arms.plan import Role
from rlaudit.laboratory.studies.arms.rollout import engine_settings
from rlaudit.laboratory.studies.arms.run import FinishedArm, FinishedRun
from rlaudit.layers import Layer
from rlaudit.rules.advisories import has_rule, known_advisories
from rlaudit.rules.audit.audit import Side, audit_of


@dataclass(frozen=True, kw_only=True)
class KnownDefect:
    """A known defect that arms of a run have. `rlaudit explain NAME` tells all of it."""

    name: str
    layer: Layer
    # One sentence.
    about: str
    # Sentences.
    way_out: str
    # Each as BLOCK: ARM.
    arms: tuple[str, ...]


def known_defects(run: FinishedRun) -> Iterator[KnownDefect]:
    """Yield the defects of the engines that are judged, with the arms that have each."""
    sides = {
        f"{block}: {name}": _side(arm, run)
        for (block, name), arm in run.arms.items()
        if arm.ok and arm.arm.role is not Role.RECORDED and arm.arm.model is None
    }
    for name, advisory in known_advisories().items():
        arms = () if has_rule(name) else tuple(arm for arm, side in sides.items() if advisory.undecided(side) == ())
        if arms:
            yield KnownDefect(
                name=name, layer=advisory.layer, about=advisory.sentence, way_out=advisory.way_out, arms=arms
            )


def _side(finished: FinishedArm, run: FinishedRun) -> Side:
    """Return the arm's engine as an audit sees a config."""
    treatment, machine = finished.arm.treatment, machine_of(run.setup.accelerator)
    engine = engine_settings(treatment, machine.platform)
    variables = engine.variables(machine.platform)
    config = config_of(engine.engine_args, variables, str(run.setup.model.path), treatment.sampling)
    version = Version(treatment.version)
    return audit_of(config, config, (version, version), machine).after
