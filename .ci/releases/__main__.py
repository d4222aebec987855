"""Measures releases by themselves, oldest first: `cd .ci && python -m releases RECIPE [--versions 0.8.5..0.32.0]`.

RECIPE is one of recipes/ here (every-release, updates-by-release), or another recipe of arms or of weight updates, such
as sampling-parameters: each release takes the place of every candidate, and references are left out.

What is finished in the run directory is not run again, nor what its report holds of another machine: to add a release
to a folder of examples/releases, copy the report into the run directory first. `rlaudit report RUN_DIR` prints it anew.
"""

import argparse
import sys
from pathlib import Path

from releases.every_release import each_release
from releases.recipe_of_release import HERE, recipes_by_release
from rlaudit.ablation.run import Ablation
from rlaudit.cli.output import parse_outputs, write_outputs
from rlaudit.engines.environments.given_interpreters import ENGINE_HELP, TRAINER_HELP, given_interpreters
from rlaudit.engines.hardware.accelerator import detect
from rlaudit.errors import RlauditError
from rlaudit.laboratory.estimate import estimate
from rlaudit.laboratory.place import one_at_a_time
from rlaudit.laboratory.prompts import load_prompts
from rlaudit.severity import Threshold
from rlaudit.text.progress import Progress


def main(words: list[str] | None = None) -> int:
    """Measure the releases of a recipe and print what moves where; return 3 if one could not be measured."""
    parser = argparse.ArgumentParser(
        prog="python -m releases", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", help="a recipe of .ci/releases/recipes or of rlaudit by name, or a path")
    parser.add_argument("--versions", help="OLDEST..NEWEST, or releases with commas; those of the recipe by default")
    parser.add_argument("--model", help="another model: a path or a hub id")
    parser.add_argument("--prompts", help="other prompts: a .txt or .jsonl file")
    parser.add_argument("--samples", type=int, help="completions per prompt")
    parser.add_argument("--run-dir", type=Path, help="where the run is kept; runs/RECIPE of the checkout by default")
    parser.add_argument("--python", action="append", help=ENGINE_HELP)
    parser.add_argument("--trainer-python", help=TRAINER_HELP)
    parser.add_argument("--cpu", action="store_true", help="use CPU engines although there is a GPU")
    parser.add_argument("--keep", action="store_true", help="leave the environments that are built for a release")
    parser.add_argument("--dry-run", action="store_true", help="print what would be run of the last release, and stop")
    options = parser.parse_args(words)

    accelerator, progress = detect(options.cpu), Progress()
    study, path, recipes = recipes_by_release(
        options.recipe,
        options.versions,
        accelerator.kind,
        model=options.model,
        prompts=options.prompts,
        samples=options.samples,
    )
    last = recipes[[*recipes][-1]]
    prompts = load_prompts(last.prompts, last.prompts_read)
    folder = options.run_dir or HERE.parents[1] / "runs" / path.stem
    given = given_interpreters(options.python, options.trainer_python)
    print(f"{len(recipes)} releases: {', '.join(recipes)}", file=sys.stderr)
    if options.dry_run:
        print(estimate(study, study.plan(last, accelerator, prompts), accelerator, prompts, folder, given))
        return 0
    ablation = Ablation(
        study, path, accelerator, prompts, folder, one_at_a_time, progress, Threshold(), until_verdict=False
    )
    return write_outputs(parse_outputs(None), each_release(ablation, recipes, given, keep=options.keep))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RlauditError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
