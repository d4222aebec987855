"""Returns the samples of a recorded engine in the form of generate.py. A worker script: see worker.py.

job
  rows       one object per completion, as generate.py writes them
  engine     V0 or V1; null if that is unknown
  effective  the configuration that the engine had resolved: {section: {field: value}}
  reads      what to report of it besides RESOLVED (generate.py)

samples.jsonl   the rows
result          resolved, as in generate.py; generated_tokens
"""


def run(job, channel):
    """Write the rows, and return the part of the configuration that generate.py returns."""
    paths = {**channel.neighbour("generate").RESOLVED, **job["reads"]}
    channel.write_lines("samples.jsonl", job["rows"])
    return {
        "resolved": {"engine": job["engine"], **{name: read(job["effective"], paths[name]) for name in paths}},
        "generated_tokens": sum(len(row["token_ids"]) for row in job["rows"]),
    }


def read(effective, paths):
    """Return the value at the first path that this release has; None if it has none of them."""
    for path in paths:
        section, name = path.split(".", 1)
        fields = effective.get(section)
        if isinstance(fields, dict) and name in fields:
            value = fields[name]
            return value.replace("torch.", "") if isinstance(value, str) else value
    return None
