"""Derive a fund's book from custodian records, code its guidelines, find breaches and the cheapest cure."""
