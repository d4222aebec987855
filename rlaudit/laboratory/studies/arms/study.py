"""Arms: engines that differ in a factor at a time, each with one set of weights."""

from rlaudit.laboratory.studies.arms.estimate import cost_of_arms
from rlaudit.laboratory.studies.arms.plan import plan_arms
from rlaudit.laboratory.studies.arms.recipe import recipe_of
from rlaudit.laboratory.studies.arms.run import execute
from rlaudit.laboratory.study import Study

STUDY = Study("arms", "blocks", recipe_of, plan_arms, cost_of_arms, execute, looks=True)
