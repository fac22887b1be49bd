"""Plan, run, store and judge many episodes."""
