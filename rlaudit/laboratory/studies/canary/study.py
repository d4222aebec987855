"""Canary: a short training per arm, on real engines, that ends in the curves people judge a migration by."""

from rlaudit.laboratory.studies.canary.plan import cost_of_trainings, plan_trainings
from rlaudit.laboratory.studies.canary.recipe import training_recipe_of
from rlaudit.laboratory.studies.canary.run import execute
from rlaudit.laboratory.study import Study

STUDY = Study("canary", "training", training_recipe_of, plan_trainings, cost_of_trainings, execute)
