"""Predictions for devices that are not at hand: does a model fit, and how fast can it be?

Nothing here is measured, and whatever shows it says "predicted".
"""
