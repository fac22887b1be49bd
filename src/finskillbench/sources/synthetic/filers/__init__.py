"""The fictional companies as SEC filers: full statements, later changes to them, and EDGAR's files."""
