"""Methods of making features: each turns raw profiles into a few numbers in a way of its own."""

from topstory.extras import require

require("features")
