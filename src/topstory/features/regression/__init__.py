"""Bilinear logistic regression of clicks on user and article."""

from topstory.extras import require

require("features")
