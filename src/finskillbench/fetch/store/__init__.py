"""What has been fetched, on disk: whole files only, and a journal of where each of them came from."""
