"""Updates the weights of a running vLLM, several times and in several ways, and records which weights sampled what.

A worker script (see engines/cells/worker.py) with files beside it: steerable_engine.py hides how releases differ,
weight_transports.py brings the weights, update_session.py plays the steps, and generate.py describes what the engine
resolved.

job
  model, revision, trust_remote_code, engine_args, engine (see generate.py)
  path           how weights are loaded: reload_weights, reload_from_iterator, load_weights or weight_transfer
  transport      how they reach the workers: disk or broadcast
  checkpoints    {version: folder}; version "0" is what the engine starts with
  prompt_token_ids, sampling (of SamplingParams)
  drain_seconds  how long requests may take after the last step of a case before they count as lost
  cases          [{"name", "steps": [...]}], one after the other in the same engine. A step that fails ends its case.
                 Steps:
                   {"do": "restore"}             version 0 again, nothing in the cache
                   {"do": "reset_prefix_cache"}
                   {"do": "submit", "run", "requests", "max_tokens", "until"}
                        returns when each request has `until` tokens (default: all of them)
                   {"do": "advance", "run", "until"}   wait for more tokens of a run
                   {"do": "settle"}              wait for every request
                   {"do": "update", "version", "mode", "clear_cache", "skip", "while_paused": [submits]}
                        skip: parts of tensor names that are left out; absent: none
                        an update that fails is not resumed from, and what was in flight is given up
                   {"do": "read_back"}           compare what the worker holds with this version and those before it

samples.jsonl    one line per request: token ids, logprobs, the version each token was sampled with (null: while the
                 update ran), cached tokens, how it ended
result           resolved, kind, transport (what it really was), updates, read_backs, steps (what each came to), seconds
"""

import asyncio
import time


def run(job, channel):
    """Start the engine, play every case, and leave what every request returned."""
    channel.phase("launch")
    # The event loop first: AsyncLLM starts its tasks on the loop that runs when it is made.
    return asyncio.run(play(job, channel))


async def play(job, channel):
    """Play every case of the job on one engine."""
    channel.phase("load")
    started = time.monotonic()
    transport = channel.neighbour("weight_transports").transport_of(job)
    async with channel.neighbour("steerable_engine").running(job, channel) as (engine, resolved):
        try:
            ran = await transport.open(engine)
            channel.phase("update")
            session = channel.neighbour("update_session").Session(job, engine, transport, channel)
            loaded_after = time.monotonic() - started
            for case in job["cases"]:
                await session.play(case)
        finally:
            transport.close()
    channel.write_lines("samples.jsonl", session.rows)
    return {
        "resolved": resolved,
        "kind": engine.kind,
        "transport": ran,
        "updates": session.updates,
        "read_backs": session.read_backs,
        "steps": session.steps,
        "load_seconds": loaded_after,
        "case_seconds": session.seconds,
    }
