"""What a confined process may do: `access` to files, system `calls`, and `confine`, which holds it to them."""
