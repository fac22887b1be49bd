"""Restrictions of a confined process: file `access`, system `calls`, and `confine`, which applies them."""
