"""Run episodes on the workers of a Dask cluster; the driver judges and journals them."""
