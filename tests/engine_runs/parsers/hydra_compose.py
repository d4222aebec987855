"""A folder of configs and a name: composed by Hydra as it stands."""

import json
import sys

from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

folder, name = json.loads(sys.argv[1])
with initialize_config_dir(config_dir=folder, version_base=None):
    print("PARSED" + json.dumps(OmegaConf.to_container(compose(name), resolve=False)))
