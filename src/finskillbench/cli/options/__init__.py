"""Options of commands that run episodes or estimate their cost: `run`, `plan` and `drive`."""
