"""argv of `python -m openrlhf.cli.train_ppo_ray`, by the parser of its own module."""

import argparse
import json
import runpy
import sys

from stand_ins import stand_in_for_all_but

stand_in_for_all_but("openrlhf_home")
argv = json.loads(sys.argv[1])
sys.argv = ["train_ppo_ray", *argv[argv.index("openrlhf.cli.train_ppo_ray") + 1 :]]
parse = argparse.ArgumentParser.parse_args


def parse_and_stop(self, *arguments, **keywords):
    print("PARSED" + json.dumps(vars(parse(self, *arguments, **keywords)), default=str))
    sys.exit(0)


argparse.ArgumentParser.parse_args = parse_and_stop
runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
