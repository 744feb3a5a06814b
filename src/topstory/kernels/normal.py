"""The normal distribution in kernels: its quantiles, its density and its distribution function."""

import math

import numpy as np

from topstory.kernels.compilation import compiled, inlined

_ROOT_HALF = math.sqrt(0.5)
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)


@inlined
def density(z: float) -> float:
    """φ(z)."""
    return _DENSITY_AT_0 * math.exp(-0.5 * z * z)


@inlined
def below(z: float) -> float:
    """Φ(z): the probability of less than z."""
    return 0.5 * math.erfc(-z * _ROOT_HALF)


@compiled
def quantile(u: float) -> float:
    """The z with Φ(z) = u, for u in (0, 1): Wichura's AS 241 (1988), to about 1e-16 of z.

    Two rational functions of the 7th degree: near the middle in u, in the tails in √(−ln u).
    """
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        upper = 2.5090809287301226727e3
        upper = upper * r + 3.3430575583588128105e4
        upper = upper * r + 6.7265770927008700853e4
        upper = upper * r + 4.5921953931549871457e4
        upper = upper * r + 1.3731693765509461125e4
        upper = upper * r + 1.9715909503065514427e3
        upper = upper * r + 1.3314166789178437745e2
        upper = upper * r + 3.3871328727963666080e0
        lower = 5.2264952788528545610e3
        lower = lower * r + 2.8729085735721942674e4
        lower = lower * r + 3.9307895800092710610e4
        lower = lower * r + 2.1213794301586595867e4
        lower = lower * r + 5.3941960214247511077e3
        lower = lower * r + 6.8718700749205790830e2
        lower = lower * r + 4.2313330701600911252e1
        lower = lower * r + 1.0
        return q * upper / lower
    r = math.sqrt(-math.log(u if q < 0.0 else 1.0 - u))
    if r <= 5.0:
        r -= 1.6
        upper = 7.74545014278341407640e-4
        upper = upper * r + 2.27238449892691845833e-2
        upper = upper * r + 2.41780725177450611770e-1
        upper = upper * r + 1.27045825245236838258e0
        upper = upper * r + 3.64784832476320460504e0
        upper = upper * r + 5.76949722146069140550e0
        upper = upper * r + 4.63033784615654529590e0
        upper = upper * r + 1.42343711074968357734e0
        lower = 1.05075007164441684324e-9
        lower = lower * r + 5.47593808499534494600e-4
        lower = lower * r + 1.51986665636164571966e-2
        lower = lower * r + 1.48103976427480074590e-1
        lower = lower * r + 6.89767334985100004550e-1
        lower = lower * r + 1.67638483018380384940e0
        lower = lower * r + 2.05319162663775882187e0
        lower = lower * r + 1.0
    else:
        r -= 5.0
        upper = 2.01033439929228813265e-7
        upper = upper * r + 2.71155556874348757815e-5
        upper = upper * r + 1.24266094738807843860e-3
        upper = upper * r + 2.65321895265761230930e-2
        upper = upper * r + 2.96560571828504891230e-1
        upper = upper * r + 1.78482653991729133580e0
        upper = upper * r + 5.46378491116411436990e0
        upper = upper * r + 6.65790464350110377720e0
        lower = 2.04426310338993978564e-15
        lower = lower * r + 1.42151175831644588870e-7
        lower = lower * r + 1.84631831751005468180e-5
        lower = lower * r + 7.86869131145613259100e-4
        lower = lower * r + 1.48753612908506148525e-2
        lower = lower * r + 1.36929880922735805310e-1
        lower = lower * r + 5.99832206555887937690e-1
        lower = lower * r + 1.0
    found = upper / lower
    return -found if q < 0.0 else np.float64(found)
