"""Write a small mixture of experts with random weights, whose head is a matrix of its own.

python make_model.py TOKENIZER FOLDER        (with transformers; TOKENIZER: a model's folder, such as SmolLM2's)
"""

import sys

import torch
from transformers import AutoTokenizer, MixtralConfig, MixtralForCausalLM

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
torch.manual_seed(0)
model = MixtralForCausalLM(
    MixtralConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=2048,
        num_local_experts=8,
        num_experts_per_tok=2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.06,
    )
).to(torch.float32)
model.lm_head.weight.data *= 4  # as sure of its tokens as a trained model
model.save_pretrained(sys.argv[2])
tokenizer.save_pretrained(sys.argv[2])
