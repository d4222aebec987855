"""Weight updates: does an engine serve the weights that the trainer thinks it serves?"""

from rlaudit.laboratory.studies.updates.estimate import cost_of_updates
from rlaudit.laboratory.studies.updates.plan import plan_updates
from rlaudit.laboratory.studies.updates.recipe import update_recipe_of
from rlaudit.laboratory.studies.updates.run import execute
from rlaudit.laboratory.study import Study

STUDY = Study("updates", "weight_updates", update_recipe_of, plan_updates, cost_of_updates, execute, in_one_folder=True)
