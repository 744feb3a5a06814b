"""Features that change with the event: the hour, an article's age, how often a visitor saw it."""

from topstory.extras import require

require("features")
