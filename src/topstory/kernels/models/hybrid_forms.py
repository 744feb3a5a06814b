"""The forms S and v that hybrid scores articles by: computed, and kept up to date.

The symbols are those of `topstory.kernels.models.hybrid`. These functions take the arrays that they
need, not the whole state: its two dozen arrays take the compiler several times as long.
"""

from topstory.kernels.algebra import multiply
from topstory.kernels.compilation import Counters, Floats, Slots, inlined, internal
from topstory.kernels.contexts import UNROLLED_UP_TO

# Changes after it left the pool for which an article's form is kept: about what computing it costs.
KEEP_FOR = 32
SIX = 6  # numbers of a user and of an article, as in the paper

# Places in Hybrid.clock.
CHANGES, ACTIVE, CURRENT, UPDATES = 0, 1, 2, 3


@internal
def compute_form(
    P: Floats,
    beta: Floats,
    A_inverse: Floats,
    b: Floats,
    features: Floats,
    ridge: float,
    room: Floats,
    square_room: Floats,
    S: Floats,
    v: Floats,
) -> None:
    """S and v of one article from scratch; all but P and beta are its own."""
    d, m = b.shape[0], features.shape[0]
    rest = room[3]
    for i in range(d):
        total = 0.0
        for j in range(m):
            total += beta[i * m + j] * features[j]
        rest[i] = b[i] + ridge * total
    multiply(A_inverse, rest, v)
    inner, half = square_room[0], square_room[1]  # P_f and A⁻¹P_f
    inner[:] = 0.0
    half[:] = 0.0
    for i in range(d):
        for k in range(m):
            weight = features[k]
            if weight != 0.0:
                for j in range(d):
                    total = 0.0
                    for q in range(m):
                        total += P[i * m + k, j * m + q] * features[q]
                    inner[i, j] += weight * total
    for i in range(d):
        for k in range(d):
            for j in range(d):
                half[i, j] += A_inverse[i, k] * inner[k, j]
    for i in range(d):
        for j in range(i + 1):
            total = 0.0
            for k in range(d):
                total += half[i, k] * A_inverse[k, j]
            S[i, j] = A_inverse[i, j] + ridge * ridge * total
            S[j, i] = S[i, j]


@internal
def aim(
    x: Floats,
    A_inverse: Floats,
    features: Floats,
    P: Floats,
    ridge: float,
    u: Floats,
    w: Floats,
    h: Floats,
) -> None:
    """From the context x: u = A⁻¹x, w = ridge·u ⊗ f and h = Pw."""
    m = features.shape[0]
    multiply(A_inverse, x, u)
    for i in range(u.shape[0]):
        for j in range(m):
            w[i * m + j] = ridge * u[i] * features[j]
    multiply(P, w, h)


@inlined
def move_form(
    d: int,
    m: int,
    h: Floats,
    f: Floats,
    inverse: Floats,
    own: bool,
    ridge: float,
    room: Floats,
    S: Floats,
    v: Floats,
    shrink: float,
    step: float,
) -> None:
    """The same for one article; `own`: it is the one of the trial."""
    u, folded, g = room[1], room[2], room[3]
    for k in range(d):
        total = 0.0
        for j in range(m):
            total += h[k * m + j] * f[j]
        folded[k] = total
    if d <= UNROLLED_UP_TO:  # the same sums as multiply's, faster for so few
        for k in range(d):
            total = 0.0
            for j in range(d):
                total += inverse[j, k] * folded[j]
            g[k] = ridge * total + (u[k] if own else 0.0)
    else:
        multiply(inverse, folded, g)
        for k in range(d):
            g[k] = ridge * g[k] + (u[k] if own else 0.0)
    for k in range(d):
        v[k] += step * g[k]
    if shrink != 0.0:
        for k in range(d):
            part = shrink * g[k]
            for j in range(d):
                S[k, j] -= part * g[j]


@internal
def move_forms(
    active: Slots,
    left_at: Counters,
    clock: Counters,
    A_inverse: Floats,
    features: Floats,
    ridge: float,
    S: Floats,
    v: Floats,
    room: Floats,
    h: Floats,
    a: int,
    shrink: float,
    step: float,
) -> None:
    """S −= shrink·ggᵀ and v += step·g for every article in use; those idle for long are let go."""
    d, m = room.shape[1], features.shape[1]
    clock[CHANGES] += 1
    i = 0
    while i < clock[ACTIVE]:
        article = active[i]
        if left_at[article] < clock[CHANGES] - KEEP_FOR:
            left_at[article] = -1
            clock[ACTIVE] -= 1
            active[i] = active[clock[ACTIVE]]
            continue
        own = article == a
        f, inverse = features[article], A_inverse[article]
        S_a, v_a = S[article], v[article]
        if d == SIX and m == SIX:  # lengths that the compiler knows: a tenth faster
            move_form(SIX, SIX, h, f, inverse, own, ridge, room, S_a, v_a, shrink, step)
        else:
            move_form(d, m, h, f, inverse, own, ridge, room, S_a, v_a, shrink, step)
        i += 1
