"""Several processes on one machine: workers answer HTTP, one learner owns the state."""

from topstory.extras import require

require("serve")
