"""Hands over what a recorded engine sampled, as if it had been asked just now. A worker script: see worker.py.

job
  rows       one object per completion, as generate.py writes them
  engine     V0 or V1; null if that is unknown
  effective  the configuration that the engine had resolved: {section: {field: value}}
  reads      what to tell of it besides RESOLVED (generate.py)

samples.jsonl   the rows
result          resolved, as of an engine; generated_tokens
"""


def run(job, channel):
    """Write the rows, and tell of the configuration what generate.py would."""
    paths = {**channel.neighbour("generate").RESOLVED, **job["reads"]}
    channel.write_lines("samples.jsonl", job["rows"])
    return {
        "resolved": {"engine": job["engine"], **{name: read(job["effective"], ways) for name, ways in paths.items()}},
        "generated_tokens": sum(len(row["token_ids"]) for row in job["rows"]),
    }


def read(effective, paths):
    """Return the value at the first path that this release has; None if it has none of them."""
    for path in paths:
        section, name = path.split(".", 1)
        held = effective.get(section)
        if isinstance(held, dict) and name in held:
            value = held[name]
            return value.replace("torch.", "") if isinstance(value, str) else value
    return None
