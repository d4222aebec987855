"""From files to findings: which versions, which configs, what they resolve to, which rules speak."""
