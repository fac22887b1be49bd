"""The truth of a case once more, from nothing but what its agent sees, by code that shares nothing with the build."""
