"""The options that say what is run: of `run` and `drive`, which do it, and of `plan`, which says what it would cost."""
