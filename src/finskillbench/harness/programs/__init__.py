"""Programs that answer through the loop like a model, for example reference, trivial, nop."""
