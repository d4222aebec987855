"""From a recipe to finished cells: factors, plan, run."""
