"""argv of `python -m verl.trainer.main_ppo`: composed by Hydra on verl's own configs."""

import json
import sys
from pathlib import Path

import hydra
import verl_home
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

own = Path(verl_home.HOME) / "verl/trainer/config"
argv = json.loads(sys.argv[1])
folder = next((word.partition("=")[2] for word in argv if word.startswith("--config-path=")), str(own))
name = next((word.partition("=")[2] for word in argv if word.startswith("--config-name=")), "ppo_trainer")
overrides = [word for word in argv if not word.startswith("-") and "=" in word]
assert hydra.__version__
with initialize_config_dir(config_dir=folder, version_base=None):
    config = compose(name, overrides=[*overrides, f"hydra.searchpath=[file://{own}]"])
print("PARSED" + json.dumps(OmegaConf.to_container(config.actor_rollout_ref.rollout, resolve=False)))
