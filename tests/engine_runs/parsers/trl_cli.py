"""argv of `trl grpo`, by TrlParser with GRPOConfig; the script's own arguments are left aside."""

import json
import sys

from trl import GRPOConfig, TrlParser

argv = json.loads(sys.argv[1])
words = [*argv[argv.index("grpo") + 1 :], "--output_dir", "/tmp/none", "--bf16", "false", "--use_cpu", "true"]
(config, _rest) = TrlParser(GRPOConfig).parse_args_and_config(words, return_remaining_strings=True)
print("PARSED" + json.dumps(config.to_dict(), default=str))
