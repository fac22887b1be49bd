"""Programs that answer through the loop like a model: reference, trivial, nop."""
