"""Bilinear logistic regression of clicks on user and article."""
