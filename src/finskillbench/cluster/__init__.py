"""Connection to an existing Dask cluster; the package `distributed` is imported on use."""
