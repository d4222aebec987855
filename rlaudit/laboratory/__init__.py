"""Experiments on engines: recipe, plan, cells, scores, and the studies that give them a meaning."""
