"""The fictional companies as SEC filers: full statements, what later filings change, and the files EDGAR serves."""
