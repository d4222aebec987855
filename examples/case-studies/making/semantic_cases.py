"""Case studies whose logprobs meant something else than the trainer took them for."""

import numpy as np
from toy_engine import Engine, Sampling, generate
from toy_model import VOCABULARY, first_weights
from toy_trainer import score
from toy_training import Run, log_lines
from write_dumps import nemo_rl_records, pipelinerl_texts, short, table_records, write_lines, write_parquet

SAMPLES = 2


def prompts(generator, count, length=16):
    """`count` prompts, each SAMPLES times."""
    return generator.integers(0, VOCABULARY, (count, length)).repeat(SAMPLES, axis=0)


def raw_logprobs(folder, generator):
    """trl#4159: sampled at T=0.6 and reported before the temperature; the trainer divides by 0.6."""
    weights = first_weights(generator)
    rollout = generate(Engine(Sampling(temperature=0.6), "raw"), [weights], prompts(generator, 48), 32, generator)
    write_parquet(folder / "rollouts.parquet", rollout, score(weights, rollout, temperature=0.6), SAMPLES)


def filters_not_replayed(folder, generator):
    """trl#7269: top-p 0.8; vLLM normalises over the tokens kept, the trainer over all; then with the kept set
    replayed."""
    weights, sampling = first_weights(generator), Sampling(top_p=0.8, top_k=256)
    rollout = generate(Engine(sampling), [weights], prompts(generator, 48), 40, generator)
    write_lines(folder / "before.jsonl", table_records(rollout, score(weights, rollout).logprobs_BT, SAMPLES))
    replayed = score(weights, rollout, replay=True)
    entropy = {"trainer_entropy": replayed.entropy_BT}
    write_lines(folder / "after.jsonl", table_records(rollout, replayed.logprobs_BT, SAMPLES, entropy))


def filters_in_nemo_rl(folder, generator):
    """NeMo-RL#69: top-k and top-p with processed logprobs, prev_logprobs over the whole vocabulary."""
    weights, sampling = first_weights(generator), Sampling(top_p=0.95, top_k=20)
    for step in (1, 2):
        rollout = generate(Engine(sampling), [weights], prompts(generator, 20), 40, generator)
        write_lines(folder / f"train_data_step{step}.jsonl", nemo_rl_records(rollout, score(weights, rollout)))


def shifted_and_unscaled(folder, generator):
    """ms-swift#8427: the trainer's logprobs one place to the left of the rollout's; and at T=1, vLLM's at T=0.7."""
    weights, sampling = first_weights(generator), Sampling(temperature=0.7)
    rollout = generate(Engine(sampling), [weights], prompts(generator, 40), 32, generator)
    scores = score(weights, rollout)
    # The mask covers [first, last] of a tensor that holds the logprob of token t + 1 at place t.
    following = generator.integers(0, VOCABULARY, (len(rollout.tokens_BT), 1))
    longer = score(weights, rollout, tokens_BT=np.concatenate([rollout.tokens_BT, following], axis=1))
    write_lines(folder / "shifted.jsonl", table_records(rollout, longer.logprobs_BT[:, 1:], SAMPLES))
    write_parquet(folder / "aligned.parquet", rollout, scores, SAMPLES)


def generation_config(folder, generator):
    """OpenPipe/ART#140: the model's generation_config.json is applied; V0 reports what was sampled from."""
    weights = first_weights(generator)
    sampling = Sampling(temperature=1.0, top_p=0.8, top_k=20, repetition_penalty=1.05)
    rollout = generate(Engine(sampling), [weights], prompts(generator, 48), 40, generator)
    write_lines(folder / "rollouts.jsonl", table_records(rollout, score(weights, rollout).logprobs_BT, SAMPLES))


def retokenised(folder, generator):
    """rllm#816: the answer comes back as text and is encoded again, the logprobs are of the tokens that were sampled;
    where there are too few of them they are filled up with 0.0."""
    weights = first_weights(generator)
    rollout = generate(Engine(), [weights], prompts(generator, 40), 48, generator)
    encoded = [_encoded_again(tokens, generator) for tokens in rollout.tokens_BT.tolist()]
    longest = max(map(len, encoded))
    padded = np.array([tokens + [0] * (longest - len(tokens)) for tokens in encoded])
    trainer = score(weights, rollout, tokens_BT=padded).logprobs_BT
    records = []
    for record, tokens, scored in zip(table_records(rollout, trainer, SAMPLES), encoded, trainer, strict=True):
        reported = (record["rollout_logprob"] + [0.0] * len(tokens))[: len(tokens)]
        own = {"token_id": tokens, "rollout_logprob": reported, "trainer_logprob": short(scored[: len(tokens)])}
        records.append({**record, **own})
    write_lines(folder / "rollouts.jsonl", records)


def _encoded_again(tokens, generator):
    """What a tokenizer makes of the text of these tokens: here and there one token of two, or two of one."""
    again = list(tokens)
    for _ in range(generator.integers(0, 4)):
        place = int(generator.integers(4, len(again) - 4))
        width = int(generator.integers(1, 3))
        again[place : place + width] = generator.integers(0, VOCABULARY, 3 - width).tolist()
    return again


def migration(folder, generator):
    """PipelineRL#137: V1's raw logprobs under a temperature; the dump of the actor, the trainer's logprobs, and the
    logs of two seeds before the migration and one run after it."""
    weights = first_weights(generator)
    rollout = generate(Engine(Sampling(temperature=0.7), "raw"), [weights], prompts(generator, 40), 32, generator)
    write_lines(folder / "streams/actor/0/0/0.jsonl", pipelinerl_texts(rollout, SAMPLES, version=0))
    trainer = score(weights, rollout, temperature=0.7).logprobs_BT
    write_lines(
        folder / "trainer.jsonl",
        (
            {
                "prompt_id": f"group {row // SAMPLES}",
                "sample_id": f"line {row // SAMPLES + 1} text {row % SAMPLES}",
                "rollout_logprob": short(logprobs),
            }
            for row, logprobs in enumerate(trainer)
        ),
    )
    for name, seed, mode in (("v0-seed1", 1, "processed"), ("v0-seed2", 2, "processed"), ("v1", 3, "raw")):
        lines = log_lines(Run(mode=mode), np.random.default_rng(seed))
        (folder / f"{name}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


CASES = {
    "pipelinerl-137-v0-to-v1": migration,
    "trl-4159-raw-logprobs": raw_logprobs,
    "trl-7269-kept-mass": filters_not_replayed,
    "nemo-rl-69-top-k-top-p": filters_in_nemo_rl,
    "ms-swift-8427-shifted-mask": shifted_and_unscaled,
    "art-140-generation-config": generation_config,
    "rllm-816-encoded-again": retokenised,
}
