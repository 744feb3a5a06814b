"""What to expect of an article before anyone saw it: priors, learned from an earlier log."""

from topstory.models.priors.fit import fit_prior as fit_prior
from topstory.models.priors.prior import Prior as Prior
