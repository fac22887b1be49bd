"""Episodes on the workers of a Dask cluster: a future for each attempt, judged and journalled by the driver."""
