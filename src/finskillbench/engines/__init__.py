"""Pure mathematics on arrays and dataclasses: no files, no clock, no globals."""
