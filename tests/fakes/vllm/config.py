"""Names of V0's levels of compilation."""


class CompilationLevel:
    """Integers with names."""

    NO_COMPILATION = 0
    PIECEWISE = 3
