"""What stands between a written config and the engine: inheritance, overrides, and serializers that drop things."""
