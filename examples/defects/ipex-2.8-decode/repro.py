"""vLLM 0.11.0 on a CPU: decoding 32 requests ends the engine as soon as their contexts are longer than one block.

python repro.py MODEL [BLOCK_SIZE]        (any dense model; 16, 32, 64 or 128 tokens a block)
"""

import sys

from vllm import LLM, SamplingParams

TEXT = "The quick brown fox jumps over the lazy dog and runs through the forest until it meets a bear. "

if __name__ == "__main__":
    block_size = int(sys.argv[2]) if len(sys.argv) > 2 else 128
    llm = LLM(sys.argv[1], dtype="float32", max_model_len=512, enforce_eager=True, block_size=block_size)
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    for requests, repeated in ((32, 1), (1, 8), (32, 8)):
        llm.generate([TEXT * repeated + str(number) for number in range(requests)], params, use_tqdm=False)
        print(requests, "requests of", repeated, "sentences: ok", flush=True)
