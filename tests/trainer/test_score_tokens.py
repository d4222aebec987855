"""The scoring script against the obvious computation, on tiny models with random weights.

Needs torch and transformers in the interpreter that runs the tests, as a trainer's environment has them.
"""

import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="scoring needs torch: run these tests in a trainer's environment")
transformers = pytest.importorskip("transformers", reason="scoring needs transformers")

from plain_scoring import VOCABULARY, Channel, by_the_sampler, full_logits, ragged, sampled, saved, scores  # noqa: E402

# transformers warns about its own future in most releases; our warnings are errors elsewhere.
pytestmark = pytest.mark.filterwarnings("default")

SCORE = Path(__file__).parents[2] / "rlaudit" / "laboratory" / "trainer" / "score.py"


@pytest.fixture(scope="module")
def score():
    spec = importlib.util.spec_from_file_location("score_under_test", SCORE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    torch.set_flush_denormal(False)


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    return folder, saved(folder)


MEANINGS = [
    {"temperature": 0.7},
    {"temperature": 0.5},
    {"temperature": 8 / 7},
    {"temperature": 2.0},
    {"top_k": 20},
    {"top_p": 0.9},
    {"temperature": 1.7, "top_p": 0.97},
    {"min_p": 0.05},
    {"temperature": 0.8, "top_k": 12, "top_p": 0.8, "min_p": 0.02},
    {"repetition_penalty": 1.2},
    {"temperature": 0.7, "logit_bias": [[5, 2.0], [40, -3.0]]},
    {"repetition_penalty": 1.2, "presence_penalty": 0.5, "top_p": 0.9, "logit_bias": [[5, 2.0], [40, -3.0]]},
    {"temperature": 0.7, "repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.3, "top_k": 30},
]


def test_scores_are_those_of_the_plain_loop_and_in_the_order_of_the_job(score, tmp_path, llama):
    sequences = ragged()
    logits = full_logits(llama[1], sequences)
    arrays, record = scores(score, tmp_path, llama[0], sequences)
    expected = logits.log_softmax(-1).gather(1, sampled(sequences)[:, None])[:, 0].numpy()
    assert np.abs(arrays["trainer_logprobs"] - expected).max() < 1e-4
    assert arrays["offsets"].tolist() == np.cumsum([0, *(len(s["token_ids"]) for s in sequences)]).tolist()
    assert record["tokens"] == len(expected)
    assert record["resolved"]["tied_head"] is False
    assert record["micro_batch_floor"]["max_abs"] < 1e-4


def test_every_reading_is_that_of_the_whole_distribution(score, tmp_path, llama):
    sequences, temperature = ragged(), 0.8
    grids = {"nucleus_grid": [0.3, 0.9, 0.999], "top_k_grid": [1, 20, 300], "min_p_grid": [0.5, 0.01]}
    arrays, _ = scores(score, tmp_path, llama[0], sequences, temperature=temperature, **grids)
    mass = (full_logits(llama[1], sequences) / temperature).softmax(-1).double().numpy()
    own = mass[np.arange(len(mass)), sampled(sequences).numpy()]
    above = np.stack([(row * (row > mine)).sum() for row, mine in zip(mass, own, strict=True)])
    np.testing.assert_allclose(arrays["entropy"], -(mass * np.log(mass)).sum(1), atol=1e-4)
    np.testing.assert_array_equal(arrays["rank"], (mass > own[:, None]).sum(1) + 1)
    np.testing.assert_allclose(arrays["mass_above"], above, atol=1e-5)
    np.testing.assert_allclose(arrays["max_probability"], mass.max(1), rtol=1e-4)
    ordered = -np.sort(-mass, axis=1)
    before = np.cumsum(ordered, axis=1) - ordered
    for column, edge in enumerate(grids["nucleus_grid"]):
        kept = np.where(before[:, 511] <= edge, 1.0, (ordered * (before <= edge)).sum(1))
        # A sum of 700 terms in float32: 2e-5 is 170 units in the last place of 1.
        np.testing.assert_allclose(arrays["nucleus_mass"][:, column], kept, atol=2e-5)
    for column, k in enumerate(grids["top_k_grid"]):
        np.testing.assert_allclose(arrays["top_k_mass"][:, column], ordered[:, :k].sum(1), atol=1e-5)
    for column, share in enumerate(grids["min_p_grid"]):
        kept = (ordered * (ordered >= share * ordered[:, :1])).sum(1)
        np.testing.assert_allclose(arrays["min_p_mass"][:, column], kept, atol=1e-5)
    np.testing.assert_array_equal(arrays["top_ids"][:, 0], mass.argmax(1))
    np.testing.assert_allclose(arrays["top_logprobs"], np.log(ordered[:, :3]), atol=1e-4)


@pytest.mark.parametrize("meaning", MEANINGS, ids=str)
def test_a_candidate_is_what_the_sampler_would_report(score, tmp_path, llama, meaning):
    sequences = ragged()
    arrays, _ = scores(score, tmp_path, llama[0], sequences, candidates=[{"name": "x", **meaning}])
    expected = by_the_sampler(full_logits(llama[1], sequences), sequences, meaning)
    np.testing.assert_allclose(arrays["candidate_logprobs"][:, 0], expected, atol=2e-4)


def test_candidates_asked_for_together_are_those_asked_for_alone(score, tmp_path, llama):
    sequences = ragged()
    wanted = [{"name": str(place), **meaning} for place, meaning in enumerate(MEANINGS)]
    together, _ = scores(score, tmp_path, llama[0], sequences, candidates=wanted)
    for place, one in enumerate(wanted):
        alone, _ = scores(score, tmp_path, llama[0], sequences, candidates=[one])
        np.testing.assert_allclose(
            together["candidate_logprobs"][:, place], alone["candidate_logprobs"][:, 0], atol=1e-4
        )


def test_a_nucleus_wider_than_the_sorted_tokens_is_still_exact(score, tmp_path):
    flat = tmp_path / "flat"
    model = saved(flat, initializer_range=1e-3)  # nearly uniform: a nucleus of .95 holds 665 of 700 tokens
    sequences = ragged(3)
    meaning = {"top_p": 0.95}
    arrays, _ = scores(score, tmp_path, flat, sequences, candidates=[{"name": "x", **meaning}])
    expected = by_the_sampler(full_logits(model, sequences), sequences, meaning)
    agree = np.isfinite(expected) == np.isfinite(arrays["candidate_logprobs"][:, 0])
    assert agree.mean() > 0.95  # ties of rounding at the edge
    both = np.isfinite(expected) & agree
    np.testing.assert_allclose(arrays["candidate_logprobs"][both, 0], expected[both], atol=1e-3)


def test_replayed_filters_leave_tokens_outside_without_probability(score, tmp_path, llama):
    sequences = ragged()
    filters = {"temperature": 0.7, "top_p": 0.8, "top_k": 40}
    arrays, _ = scores(score, tmp_path, llama[0], sequences, **filters)
    expected = by_the_sampler(full_logits(llama[1], sequences), sequences, filters)
    assert np.isinf(expected).any()
    np.testing.assert_allclose(arrays["trainer_logprobs"], expected, atol=2e-4)
    assert np.isfinite(arrays["entropy"]).all()
    assert arrays["entropy"].max() <= math.log(40) + 1e-4


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Gemma2", {"final_logit_softcapping": 3.0, "sliding_window": 8}),
        ("Granite", {"logits_scaling": 4.0}),
        ("Cohere", {"logit_scale": 0.25}),
        ("Qwen2", {"tie_word_embeddings": True}),
    ],
)
def test_what_a_model_does_to_its_logits_is_repeated(score, tmp_path, kind, settings):
    folder = tmp_path / kind
    # Gemma 2 caps its attention scores too, which only the plain implementation does in every transformers release.
    attention = "eager" if kind == "Gemma2" else "sdpa"
    model = saved(folder, kind, attn_implementation=attention, **settings)
    sequences = ragged(4)
    arrays, record = scores(score, tmp_path, folder, sequences, attention=attention)
    expected = full_logits(model, sequences).log_softmax(-1).gather(1, sampled(sequences)[:, None])[:, 0].numpy()
    assert np.abs(arrays["trainer_logprobs"] - expected).max() < 2e-4
    assert record["resolved"]["model_class"] == f"{kind}ForCausalLM"


def test_a_model_that_does_something_unknown_to_its_logits_is_refused(score, tmp_path, llama, monkeypatch):
    plain = transformers.LlamaForCausalLM.forward

    def doubled(self, *arguments, **keywords):
        found = plain(self, *arguments, **keywords)
        found.logits = 2 * found.logits
        return found

    monkeypatch.setattr(transformers.LlamaForCausalLM, "forward", doubled)
    with pytest.raises(ValueError, match="more to its logits"):
        scores(score, tmp_path, llama[0], ragged(2))


def test_a_float32_head_over_a_bfloat16_body_keeps_what_rounding_logits_loses(score, tmp_path, llama, monkeypatch):
    sequences = ragged()
    half = transformers.LlamaForCausalLM.from_pretrained(llama[0], torch_dtype=torch.bfloat16).eval()
    weight = half.lm_head.weight.detach().float()
    with torch.no_grad():
        rows = []
        for sequence in sequences:
            first = len(sequence["prompt_token_ids"])
            ids = torch.tensor([sequence["prompt_token_ids"] + sequence["token_ids"]])
            rows.append(half.model(ids).last_hidden_state[0, first - 1 : -1].float() @ weight.t())
    expected = torch.cat(rows).log_softmax(-1).gather(1, sampled(sequences)[:, None])[:, 0].numpy()
    # One sequence to a batch: padding moves a bfloat16 body by more than what is looked for.
    settings = {"dtype": "bfloat16", "batch_tokens": 1}
    exact, record = scores(score, tmp_path, llama[0], sequences, head_dtype="float32", **settings)
    rounded, _ = scores(score, tmp_path, llama[0], sequences, head_dtype="bfloat16", **settings)
    monkeypatch.setattr(score.causal_model, "KEPT_HEAD_BYTES", 0)
    monkeypatch.setattr(score.causal_model, "SLICE_ROWS", 64)
    sliced, _ = scores(score, tmp_path, llama[0], sequences, head_dtype="float32", **settings)
    assert np.abs(exact["trainer_logprobs"] - expected).max() < 1e-3
    assert np.abs(sliced["trainer_logprobs"] - exact["trainer_logprobs"]).max() < 1e-4
    assert np.abs(rounded["trainer_logprobs"] - expected).max() > 1e-3
    assert (record["resolved"]["dtype"], record["resolved"]["head_dtype"]) == ("bfloat16", "float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rotary_frequencies_stay_in_float32_whatever_the_weights_are_in(score, llama, dtype):
    loaded = score.causal_model.load({"model": str(llama[0]), "dtype": dtype})
    assert loaded.body.rotary_emb.inv_freq.dtype == torch.float32
    assert torch.equal(loaded.body.rotary_emb.inv_freq, llama[1].model.rotary_emb.inv_freq)
    assert {weight.dtype for weight in loaded.model.parameters()} == {getattr(torch, dtype)}


def test_a_configuration_for_old_and_new_readers_is_loaded_in_the_dtype_that_is_asked_for(score, tmp_path):
    saved(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "dtype": "bfloat16", "torch_dtype": "bfloat16"}))
    loaded = score.causal_model.load({"model": str(tmp_path), "dtype": "float32"})
    assert {weight.dtype for weight in loaded.model.parameters()} == {torch.float32}


def test_float32_is_ieee_float32_and_the_record_says_so(score, tmp_path, llama, monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    torch.set_float32_matmul_precision("high")
    _, record = scores(score, tmp_path, llama[0], ragged(2))
    said = record["resolved"]
    assert (said["allow_tf32"], said["float32_matmul_precision"], said["nvidia_tf32_override"]) == (
        False,
        "highest",
        "0",
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="this torch can use a GPU")
def test_a_torch_that_cannot_use_the_gpu_says_so_before_the_model_is_read(score, tmp_path):
    with pytest.raises(RuntimeError, match=f"torch {torch.__version__.partition('+')[0]}.* cannot use the GPU: "):
        scores(score, tmp_path, tmp_path / "no model here", ragged(1), device="cuda")


def gpus_with(monkeypatch, *free):
    """This many bytes free on each of so many GPUs."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(free))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda place: (free[place], 2 * free[place]))


def test_a_model_that_one_gpu_holds_goes_there_and_a_larger_one_on_all(score, monkeypatch):
    gpus_with(monkeypatch, 100, 100, 100)
    assert score.causal_model.placement(90, 10) == {"device_map": {"": 0}}
    wide = score.causal_model.placement(91, 10)
    assert wide == {"device_map": "balanced", "max_memory": {0: 90, 1: 90, 2: 90}}
    with pytest.raises(RuntimeError, match="the GPUs have"):
        score.causal_model.placement(271, 10)


def test_accelerate_shares_the_layers_out_within_what_it_was_told(score, llama, monkeypatch):
    accelerate = pytest.importorskip("accelerate", reason="only accelerate shares a model out")
    whole = score.causal_model.weight_bytes(llama[1].config, torch.float32, False)
    assert whole == 4 * sum(weight.numel() for weight in llama[1].parameters())
    gpus_with(monkeypatch, int(0.9 * whole), int(0.9 * whole))
    room = score.causal_model.placement(whole, 0)["max_memory"]
    places = accelerate.infer_auto_device_map(llama[1], max_memory=room, no_split_module_classes=["LlamaDecoderLayer"])
    assert set(places.values()) == {0, 1}


def test_an_attention_that_is_not_installed_is_refused_in_the_librarys_words(score, tmp_path, llama):
    if importlib.util.find_spec("flash_attn"):
        pytest.skip("flash_attn is installed")
    with pytest.raises((ImportError, ValueError), match=r"(?i)flash"):
        scores(score, tmp_path, llama[0], ragged(2), attention="flash_attention_2")


def test_foreign_token_ids_and_empty_prompts_are_named(score, tmp_path, llama):
    foreign = [*ragged(2), {"prompt_token_ids": [5], "token_ids": [VOCABULARY]}]
    with pytest.raises(ValueError, match=f"sequence 2 holds token id {VOCABULARY}"):
        scores(score, tmp_path, llama[0], foreign)
    with pytest.raises(ValueError, match="sequence 0 has an empty prompt"):
        scores(score, tmp_path, llama[0], [{"prompt_token_ids": [], "token_ids": [5]}])


def test_a_sequence_without_a_sampled_token_is_passed_over(score, tmp_path, llama):
    sequences = [*ragged(3), {"prompt_token_ids": [5, 6, 7], "token_ids": []}, *ragged(2, seed=9)]
    arrays, record = scores(score, tmp_path, llama[0], sequences)
    expected = full_logits(llama[1], sequences).log_softmax(-1).gather(1, sampled(sequences)[:, None])[:, 0].numpy()
    assert np.abs(arrays["trainer_logprobs"] - expected).max() < 1e-4
    assert record["sequences"] == len(sequences)


def test_progress_is_told_while_scoring(score, tmp_path, llama):
    channel = Channel(tmp_path)
    score.run({"model": str(llama[0]), "dtype": "float32", "sequences": ragged(), "batch_tokens": 40}, channel)
    told = [fields["done"] for event, fields in channel.events if event == "progress"]
    assert len(told) > 1
    assert told == sorted(told)
    assert [name for event, name in channel.events if event == "phase"] == ["load", "score"]
