"""Nothing: an environment variable that no engine reads. The effect of this factor is the noise of all
others."""

from rlaudit.laboratory.factor import ArmTrace, Factor, Observation, always
from rlaudit.laboratory.treatment import Treatment
from rlaudit.layers import Layer

VARIABLE = "RLAUDIT_DUMMY"


def set_level(treatment: Treatment, level: str) -> Treatment:
    """`on` sets the variable to 1, `off` to 0."""
    return treatment.with_variables(**{VARIABLE: "1" if level == "on" else "0"})


def observe(trace: ArmTrace) -> Observation:
    """Return the level that was set: nothing else of it can be seen."""
    level = "on" if trace.treatment.variables.get(VARIABLE) == "1" else "off"
    return Observation(level, f"{VARIABLE} is {'set' if level == 'on' else 'not set'}")


FACTOR = Factor(
    name="dummy",
    layer=Layer.INFERENCE_PATH,
    levels=("on", "off"),
    set_level=set_level,
    observe=observe,
    setting=VARIABLE,
    move=always("off"),
)
