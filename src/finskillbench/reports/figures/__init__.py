"""Figures of results as SVG and PNG, drawn by this package.

Figures must work in light and dark pages, for screen readers and without scripts. Parts have classes instead of
colours, which pages and files set. An Altair renderer (vl-convert) would add a 33 MB JavaScript engine and fixed
colours; resvg needs 1.4 MB. Each figure is drawn from a `Table`, shown below it in the page.
"""
