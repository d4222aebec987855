"""argv of SkyRL's entry point, by its own `from_cli_overrides`."""

import dataclasses
import json
import sys

from stand_ins import stand_in_for_all_but

stand_in_for_all_but("skyrl", "skyrl_gym", "omegaconf", "yaml", "antlr4", "attr")
from skyrl.train.config.config import SkyRLTrainConfig  # noqa: E402

words = [word for word in json.loads(sys.argv[1]) if "=" in word and not word.startswith("-")]
config = SkyRLTrainConfig.from_cli_overrides(words)
print("PARSED" + json.dumps(dataclasses.asdict(config.generator.inference_engine), default=str))
