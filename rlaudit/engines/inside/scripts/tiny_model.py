"""Writes a random two-layer Llama or Mixtral that every vLLM release reads. A worker script.

job
  output    folder for config.json and model.safetensors
  seed      of the weights
  kind      llama (default), or mixtral with experts in place of the MLP

The configuration is written by hand, because each transformers writes one that its predecessors misread: `dtype` for
`torch_dtype`, `rope_parameters` for `rope_theta`. No tokenizer: engines are started with `skip_tokenizer_init`.
"""

import json
import os

HIDDEN, HEADS, KV_HEADS, HEAD_SIZE, INNER, LAYERS, VOCABULARY = 128, 2, 1, 64, 256, 2, 512
EXPERTS, OF_A_TOKEN = 4, 2


def run(job, channel):
    """Save the model; the same seed gives the same weights on one torch release."""
    import torch
    from safetensors.torch import save_file

    channel.phase("save")
    os.makedirs(job["output"], exist_ok=True)
    generator = torch.Generator().manual_seed(job["seed"])
    weights, experts = {}, EXPERTS if job.get("kind") == "mixtral" else 0
    for name, shape in shapes(experts).items():
        if len(shape) == 1:
            weights[name] = torch.ones(shape)
        else:
            weights[name] = torch.randn(shape, generator=generator) * shape[1] ** -0.5
    save_file(weights, os.path.join(job["output"], "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(job["output"], "config.json"), "w", encoding="utf-8") as document:
        json.dump(configuration(experts), document, indent=1)
    return {}


def shapes(experts):
    """Return the shapes of the weights by their names in checkpoints of Llama, or of Mixtral if there are experts."""
    shapes_by_name = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        prefix = "model.layers.%d." % layer
        shapes_by_name[prefix + "self_attn.q_proj.weight"] = (HEADS * HEAD_SIZE, HIDDEN)
        shapes_by_name[prefix + "self_attn.k_proj.weight"] = (KV_HEADS * HEAD_SIZE, HIDDEN)
        shapes_by_name[prefix + "self_attn.v_proj.weight"] = (KV_HEADS * HEAD_SIZE, HIDDEN)
        shapes_by_name[prefix + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * HEAD_SIZE)
        if experts:
            shapes_by_name[prefix + "block_sparse_moe.gate.weight"] = (experts, HIDDEN)
        else:
            shapes_by_name[prefix + "mlp.gate_proj.weight"] = (INNER, HIDDEN)
            shapes_by_name[prefix + "mlp.up_proj.weight"] = (INNER, HIDDEN)
            shapes_by_name[prefix + "mlp.down_proj.weight"] = (HIDDEN, INNER)
        for expert in range(experts):
            of_expert = prefix + "block_sparse_moe.experts.%d." % expert
            shapes_by_name[of_expert + "w1.weight"] = (INNER, HIDDEN)
            shapes_by_name[of_expert + "w2.weight"] = (HIDDEN, INNER)
            shapes_by_name[of_expert + "w3.weight"] = (INNER, HIDDEN)
        shapes_by_name[prefix + "input_layernorm.weight"] = (HIDDEN,)
        shapes_by_name[prefix + "post_attention_layernorm.weight"] = (HIDDEN,)
    shapes_by_name["model.norm.weight"] = (HIDDEN,)
    shapes_by_name["lm_head.weight"] = (VOCABULARY, HIDDEN)
    return shapes_by_name


def configuration(experts):
    """Return a configuration for old and new readers at once."""
    kind = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
    if experts:
        kind = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral"}
        kind.update(num_local_experts=experts, num_experts_per_tok=OF_A_TOKEN, sliding_window=None)
    return {
        **kind,
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_SIZE,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 1024,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
        "dtype": "float32",
    }
