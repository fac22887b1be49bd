"""Pure mathematics on arrays and dataclasses: no files, clock or global state."""
