"""Updates the weights of a running vLLM, several times and in several ways, and records which weights sampled what.

A worker script (see engines/cells/worker.py). It loads steerable_engine.py, which hides how releases differ,
weight_transports.py, which brings the weights, update_session.py, which plays the steps, and generate.py, which
describes the engine's configuration.

job
  model, revision, trust_remote_code, engine_args, engine (see generate.py)
  path           how weights are loaded: reload_weights, reload_from_iterator, load_weights or adapter
  transport      how they reach the workers: disk or broadcast
  checkpoints    {version: folder}; the engine starts with version "0"
  adapters       {version: folder}, with path adapter: a LoRA each, over version "0"
  prompt_token_ids, sampling (of SamplingParams)
  drain_seconds  how long requests may take after the last step of a case before they count as lost
  cases          [{"name", "steps": [...]}], one after the other in the same engine. A step that fails ends its case.
                 Steps:
                   {"do": "restore"}             version 0 again, with an empty cache
                   {"do": "reset_prefix_cache"}
                   {"do": "submit", "run", "requests", "max_tokens", "until", "salt"}
                        returns when each request has `until` tokens (default: all of them)
                        salt: the cache_salt of each request; absent: none
                   {"do": "settle"}              wait for every request
                   {"do": "update", "version", "mode", "clear_cache", "skip", "while_paused": [submits]}
                        skip: tensors whose names contain one of these are left out; absent: none
                        way: how an adapter is named (weight_transports.py), here and in `restore`
                        after a failed update the engine stays paused, and requests in flight are aborted
                   {"do": "read_back"}           compare the worker's weights with this version and those before it

samples.jsonl    one line per request: token ids, logprobs, the version each token was sampled with (null: while the
                 update ran), cached tokens, how it ended
result           resolved, kind, transport (the real one), updates, read_backs, steps (how each ended), case_seconds
"""

import asyncio


def run(job, channel):
    """Start the engine, play every case, and write the record of every request."""
    channel.phase("launch")
    # AsyncLLM starts its tasks on the event loop that runs when it is made.
    return asyncio.run(play(job, channel))


async def play(job, channel):
    """Play every case of the job on one engine."""
    channel.phase("load")
    transport = channel.neighbour("weight_transports").transport_of(job)
    async with channel.neighbour("steerable_engine").running(job, channel) as (engine, resolved):
        ran = await transport.open(engine)
        channel.phase("update")
        session = channel.neighbour("update_session").Session(job, engine, transport, channel)
        for case in job["cases"]:
            await session.play(case)
    channel.write_lines("samples.jsonl", session.rows)
    return {
        "resolved": resolved,
        "kind": engine.kind,
        "transport": ran,
        "updates": session.updates,
        "read_backs": session.read_backs,
        "steps": session.steps,
        "case_seconds": session.seconds,
    }
