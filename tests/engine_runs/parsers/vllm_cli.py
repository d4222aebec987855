"""argv of `vllm serve`, by vLLM's own parser."""

import json
import sys

try:
    from vllm.utils.argparse_utils import FlexibleArgumentParser
except ImportError:
    from vllm.utils import FlexibleArgumentParser
try:
    from vllm.entrypoints.openai.cli_args import make_arg_parser
except ImportError:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser

argv = json.loads(sys.argv[1])
words = argv[argv.index("serve") + 1 :]
model = ["--model", words[0]] if words and not words[0].startswith("-") else []
parsed = make_arg_parser(FlexibleArgumentParser()).parse_args([*model, *words[len(model) // 2 :]])
print("PARSED" + json.dumps(vars(parsed), default=str))
