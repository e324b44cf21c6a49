"""Finds the cycles of a graph that no guard cuts, in live graphs and in source."""
