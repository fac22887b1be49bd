"""Episodes on the workers of a Dask cluster, judged and journalled by the driver.

On each worker process runs one desk (`desk`), a task that lasts as long as the run. It plays as many episodes side by
side as it is given and knows no truth. The driver (`driver`, `ticket`) hands out episodes one by one, keeps the
budget and the limiters, which every model call of a worker asks before it is made, judges, and alone writes the run
folder. Both talk in `messages` through two of Dask's queues for each desk, so all traffic passes the scheduler.
"""
