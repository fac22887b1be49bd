"""A Dask cluster that is there already: how it is reached, and whether its workers can do our work.

It knows neither episodes nor labels; `runs.cluster` plays episodes on it, `edition.handed_out` builds labels. The
package `distributed` is imported when a cluster is asked for, never with this module.
"""
