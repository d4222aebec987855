"""The course of an inspection, from text to findings.

`files.py` collects and decodes. `inspect_file.py` takes one file through: `read_configs.py` asks every dialect whether
it recognises the file, and reads its rollout configs as each of the two releases gets them; `rules/audit/audit.py`
resolves them with vLLM's facts; rules and advisories speak. `inspect.py` does so for all files; `suppression.py` says
which findings count. `fix.py` makes their fixes, each proved by another inspection. `report/of_inspection.py` makes the
report.
"""
