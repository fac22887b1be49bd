"""EDGAR files as the SEC serves them: company facts, submissions, XBRL instances."""
