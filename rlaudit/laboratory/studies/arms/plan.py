"""From a recipe to arms, each with the arm that it is compared with.

Factors are set one at a time on the candidate *and* left out one at a time of the parity arm: a factor whose two
effects disagree interacts with another. A/A repeats of both ends measure the noise. The arms that decide run
first: the candidate, which shows what its logprobs mean; the candidate with the likeliest cause removed; the reference,
by which their distance is judged. The order of the others is random, so that drift of the machine does not look like a
factor.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any

from rlaudit.discover import Offers, discover
from rlaudit.engines.environments.environment_spec import engine_spec
from rlaudit.engines.hardware.accelerator import Accelerator
from rlaudit.engines.hardware.dtypes import emulated
from rlaudit.engines.inside.expected_engine import check_engine
from rlaudit.errors import NotFinished, UsageError
from rlaudit.laboratory import factors as factor_files
from rlaudit.laboratory.factor import Factor
from rlaudit.laboratory.prompts import PromptSet
from rlaudit.laboratory.scoring import ScoringRequest
from rlaudit.laboratory.studies.arms.recipe import Block, ExtraArm, Point, Recipe, Sampling
from rlaudit.laboratory.study import EngineWanted
from rlaudit.laboratory.treatment import TrainerSettings, Treatment
from rlaudit.text.did_you_mean import did_you_mean


class Role(StrEnum):
    """The purpose of an arm."""

    RECORDED = "recorded"
    REFERENCE = "reference"
    CANDIDATE = "candidate"
    CANDIDATE_AGAIN = "candidate again"
    FIRST = "one at a time"
    PARITY = "parity"
    PARITY_AGAIN = "parity again"
    LAST = "left out of parity"
    EXTRA = "extra"


RECORDED = "recorded"
# The turn of the arms that decide nothing by themselves.
OTHERS = 3


@dataclass(frozen=True)
class Arm:
    """One treatment of one block."""

    block: str
    name: str
    role: Role
    treatment: Treatment
    # The arm of the block that it is contrasted with.
    against: str | None = None
    factor: str | None = None
    level: str | None = None
    replicate: int = 0
    model: str | None = None
    timeout_minutes: float | None = None


@dataclass(frozen=True)
class BlockPlan:
    """A block's settings and its arms, in the order in which they run."""

    settings: Block
    arms: tuple[Arm, ...]

    @property
    def name(self) -> str:
        """The block's name."""
        return self.settings.name

    def with_role(self, role: Role) -> tuple[Arm, ...]:
        """Return the arms with this role."""
        return tuple(arm for arm in self.arms if arm.role is role)

    @property
    def deciding(self) -> tuple[Arm, ...]:
        """The arms that decide, which run first."""
        return tuple(arm for arm in self.arms if _turn(arm, self.settings) < OTHERS)

    @property
    def looked_after(self) -> tuple[Arm, ...]:
        """The arms after which the verdict may be another one."""
        turns = groupby(self.deciding, key=lambda arm: _turn(arm, self.settings))
        return tuple(list(arms)[-1] for _, arms in turns)

    @property
    def engines(self) -> tuple[Arm, ...]:
        """The arms that start an engine: all but the recorded one."""
        return tuple(arm for arm in self.arms if arm.role is not Role.RECORDED)

    @property
    def judged(self) -> tuple[str, ...]:
        """The arms that a layer may be judged on: the candidate, then the parity arm."""
        return ("candidate",) if self.parity_name is None else ("candidate", self.parity_name)

    @property
    def parity_name(self) -> str | None:
        """The name of the arm in which all parity factors are set: a separate one, or the only factor's."""
        for arm in self.with_role(Role.PARITY):
            return arm.name
        if len(self.settings.parity) == 1:
            factor = self.settings.parity[0]
            level = self.settings.factors[factor][0]
            return next(arm.name for arm in self.arms if (arm.factor, arm.level) == (factor, level))
        return None


@dataclass(frozen=True)
class Plan:
    """The blocks of a recipe that this machine can run."""

    recipe: Recipe
    blocks: tuple[BlockPlan, ...]
    # Names of the other blocks, and why they do not run.
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def moves(self) -> tuple[BlockPlan, ...]:
        """The blocks that layers are judged on: those with today's engine, or all if none has it."""
        return tuple(block for block in self.blocks if block.with_role(Role.REFERENCE)) or self.blocks

    @property
    def title(self) -> str:
        """The experiment in two words."""
        return f"{len(list(self._arms()))} arms"

    @property
    def engines(self) -> tuple[EngineWanted, ...]:
        """The engine of every arm, in the order in which they run."""
        return tuple(
            EngineWanted(
                f"vLLM {arm.treatment.version}, {arm.block}: {arm.name}",
                arm.treatment.version,
                arm.treatment.engine_args,
                arm.model,
            )
            for block in self.blocks
            for arm in block.engines
        )

    @property
    def indispensable(self) -> frozenset[str]:
        """The releases of references and candidates."""
        wanted = (Role.REFERENCE, Role.CANDIDATE)
        return frozenset(arm.treatment.version for arm in self._arms() if arm.role in wanted)

    @property
    def scoring(self) -> tuple[ScoringRequest, ...]:
        """How the trainer will score; samples of another model are not scored."""
        return tuple(scoring_request(arm) for arm in self._arms() if arm.model is None)

    def arms(self) -> list[dict[str, str]]:
        """Return the arms as plan.json names them."""
        return [
            {"block": arm.block, "name": arm.name, "role": arm.role.value, "version": arm.treatment.version}
            for arm in self._arms()
        ]

    def _arms(self) -> Iterator[Arm]:
        return (arm for block in self.blocks for arm in block.arms)


def scoring_request(arm: Arm) -> ScoringRequest:
    """Return how the trainer scores an arm's sequences."""
    sampling = {name: value for name, value in arm.treatment.sampling.items() if name not in ("max_tokens", "n")}
    return ScoringRequest(arm.treatment.trainer, sampling)


def known_factors() -> Offers[Factor]:
    """Return every factor by name."""
    return discover(factor_files, "FACTOR", Factor)


def make_plan(recipe: Recipe) -> Plan:
    """Return the arms of a recipe. Raises UsageError for a factor, level or version that does not exist."""
    factors = known_factors()
    names = [block.name for block in recipe.blocks]
    if len(set(names)) != len(names):
        raise UsageError(f"two blocks share a name: {', '.join(names)}")
    shuffle = random.Random(recipe.seed)
    return Plan(recipe, tuple(_plan_block(block, factors, shuffle) for block in recipe.blocks))


def for_accelerator(plan: Plan, accelerator: Accelerator) -> Plan:
    """Return the plan without the blocks whose dtype this machine only emulates. Raises NotFinished if none is left."""
    left_out = {
        block.name: f"{accelerator.name} has no instructions for {block.settings.native_dtype}, and emulating it takes "
        "hours; a GPU or a processor that has them runs it"
        for block in plan.blocks
        if block.settings.native_dtype is not None and emulated(block.settings.native_dtype, accelerator)
    }
    blocks = tuple(block for block in plan.blocks if block.name not in left_out)
    if not blocks:
        raise NotFinished(next(iter(left_out.values())), "a block without `native_dtype` runs on every machine")
    return replace(plan, blocks=blocks, left_out=left_out)


def plan_arms(recipe: Recipe, accelerator: Accelerator, prompts: PromptSet) -> Plan:
    """Return the arms of a recipe that this machine runs.

    Raises UsageError if a block uses more prompts than the set has, and what make_plan and for_accelerator raise.
    """
    plan = for_accelerator(make_plan(recipe), accelerator)
    if prompts.recorded is not None and prompts.recorded.completions:
        plan = replace(plan, blocks=tuple(_beside_the_recording(block) for block in plan.blocks))
    for block in plan.blocks:
        wanted, available = block.settings.prompts_used, len(prompts.prompts)
        if wanted is not None and wanted > available:
            raise UsageError(f"block {block.name} uses {wanted} prompts, the prompt set has {available}")
    return plan


def _beside_the_recording(block: BlockPlan) -> BlockPlan:
    """Return the block with the recorded completions as a further arm, beside the reference's engine."""
    recorded = [replace(arm, name=RECORDED, role=Role.RECORDED) for arm in block.with_role(Role.REFERENCE)]
    return replace(block, arms=(*recorded, *block.arms))


def _plan_block(block: Block, factors: dict[str, Factor], shuffle: random.Random) -> BlockPlan:
    _check_names(block, factors)

    def levels_on(treatment: Treatment, levels: Mapping[str, str]) -> Treatment:
        for name, level in levels.items():
            treatment = factors[name].apply(treatment, level)
        return treatment

    def new_arm(name: str, role: Role, treatment: Treatment, against: str | None = "candidate", **details: Any) -> Arm:
        return Arm(block.name, name, role, treatment, against, **details)

    def repeats_of(name: str, role: Role, treatment: Treatment, against: str) -> list[Arm]:
        number = " {}" if block.repeats > 1 else ""
        return [
            new_arm(f"{name} again{number.format(repeat)}", role, treatment, against, replicate=repeat)
            for repeat in range(1, block.repeats + 1)
        ]

    candidate = levels_on(_at_point(block, block.candidate), block.candidate.levels)
    first = [new_arm("candidate", Role.CANDIDATE, candidate, None if block.reference is None else "reference")]
    if block.reference is not None:
        reference = levels_on(_at_point(block, block.reference), block.reference.levels)
        first.insert(0, new_arm("reference", Role.REFERENCE, reference, None))
    first += repeats_of("candidate", Role.CANDIDATE_AGAIN, candidate, "candidate")
    fixes = {name: block.factors[name][0] for name in block.parity}
    parity = levels_on(candidate, fixes)
    if len(fixes) > 1:
        first.append(new_arm("parity", Role.PARITY, parity))
    if fixes:
        alone = next(f"candidate + {name}={level}" for name, level in fixes.items())
        first += repeats_of("parity", Role.PARITY_AGAIN, parity, "parity" if len(fixes) > 1 else alone)
    first += [
        new_arm(
            f"candidate + {name}={level}", Role.FIRST, factors[name].apply(candidate, level), factor=name, level=level
        )
        for name, levels in block.factors.items()
        for level in levels
    ]
    first += [
        new_arm(
            extra.name,
            Role.EXTRA,
            levels_on(_with_own_settings(candidate, extra), extra.levels),
            model=extra.model,
            timeout_minutes=extra.timeout_minutes,
        )
        for extra in block.arms
    ]
    # Leave-one-out arms come last: a factor that did not engage from the candidate need not be left out of parity.
    last = [
        new_arm(
            f"parity - {left_out}",
            Role.LAST,
            levels_on(candidate, {name: level for name, level in fixes.items() if name != left_out}),
            "parity",
            factor=left_out,
            level=its_level,
        )
        for left_out, its_level in fixes.items()
        if block.leave_one_out and len(fixes) > 1
    ]
    for arm in first + last:
        engine, version, variables = arm.treatment.engine, arm.treatment.version, arm.treatment.variables
        check_engine(engine, version, variables, f"block {block.name}: {arm.name}")
    shuffle.shuffle(first)
    shuffle.shuffle(last)
    # Sorting keeps the order of equals.
    first.sort(key=lambda arm: _turn(arm, block))
    return BlockPlan(block, tuple(first + last))


def _turn(arm: Arm, block: Block) -> int:
    """Return when an arm runs: the candidate, the first of the parity settings alone, the reference, the others."""
    likeliest = [(factor, block.factors[factor][0]) for factor in block.parity[:1]]
    if arm.role in {Role.RECORDED, Role.CANDIDATE}:
        return 0
    if arm.role is Role.FIRST and (arm.factor, arm.level) in likeliest:
        return 1
    return 2 if arm.role is Role.REFERENCE else OTHERS


def _with_own_settings(candidate: Treatment, extra: ExtraArm) -> Treatment:
    return replace(
        candidate,
        version=check_version(extra.version) if extra.version else candidate.version,
        # The candidate's engine is one of the candidate's release.
        engine=extra.engine or (None if extra.version else candidate.engine),
        engine_args={**candidate.engine_args, **extra.engine_args},
        variables={**candidate.variables, **extra.environment_variables},
    )


def _at_point(block: Block, point: Point) -> Treatment:
    return Treatment(
        version=check_version(point.version),
        engine=point.engine,
        engine_args={**block.engine_args, **point.engine_args},
        variables={**block.environment_variables, **point.environment_variables},
        sampling=sampling_in_force(block.sampling) | {"max_tokens": block.max_tokens},
        trainer=TrainerSettings(**block.trainer.model_dump()),
    )


def sampling_in_force(sampling: Sampling) -> dict[str, Any]:
    """Return the parameters that have an effect: one that is not sent switches on no slow path of the engine."""
    off = Sampling.model_validate({"temperature": sampling.temperature})
    values = sampling.model_dump()
    return {name: value for name, value in values.items() if name == "temperature" or value != getattr(off, name)}


def check_version(version: str) -> str:
    """Return the version unchanged if rlaudit can build it. Raises UsageError otherwise."""
    return engine_spec(version, "cpu").version


def _check_names(block: Block, factors: dict[str, Factor]) -> None:
    names = [*block.factors, *block.candidate.levels, *(block.reference.levels if block.reference else ())]
    names += [name for arm in block.arms for name in arm.levels]
    for name in names:
        if name not in factors:
            meant = f"{did_you_mean(name, factors)} ".lstrip()
            if name == "weight-update":
                meant = "it has its recipes, such as `rlaudit ablate weight-update`; "
            raise UsageError(
                f"unknown factor {name!r} in block {block.name}", f"{meant}there are: {', '.join(factors)}"
            )
    if block.samples % block.sampling.n:
        raise UsageError(f"block {block.name}: samples {block.samples} is no multiple of n {block.sampling.n}")
    for name in block.parity:
        if name not in block.factors:
            raise UsageError(f"block {block.name}: {name!r} is in parity but not among its factors")
