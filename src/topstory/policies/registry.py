"""Every model, explorer and policy by name: the one place where they are listed.

Help texts, the service's configuration, tuning grids, stored files, tables and figures follow from
these entries. Classes are named by their path and imported when first used, so that a command line
can list the policies without waiting for numba.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from topstory.policies.entries import (
    HALF_LIFE,
    ExplorerEntry,
    ModelEntry,
    Parameter,
    PolicyEntry,
)

if TYPE_CHECKING:
    from topstory.policies.policy import Policy

_GREY = "#8b909a"
_RIDGE = Parameter(
    "ridge",
    "weight of each article's prior; auto: found from the trials; paper: 1",
    metavar="R",
    words=("auto", "paper"),
)
_PLAIN_RIDGE = replace(_RIDGE, help="weight of each article's prior", words=("paper",))
_SHARED_RIDGE = Parameter(
    "shared_ridge", "weight of the prior of the shared coefficients", metavar="R"
)
_RATE = Parameter("rate", "click rate before any trial", metavar="P")
_PRIOR = Parameter("prior", "where it starts, learned from an earlier log by ts.fit_prior")
_ALPHA = Parameter(
    "alpha",
    "how many widths are added to an estimate",
    metavar="A",
    symbol="α",
    grid=(0.03, 0.06, 0.1, 0.2, 0.4, 0.6, 1.0, 1.5),
    plural="alphas",
    scales=1,
)

# Colours that colour-blind readers can tell apart, on a light page and on a dark one.
_MODELS = (
    ModelEntry("nothing", "topstory.models.no_model:NoModel", _GREY, panel=None, contextual=False),
    ModelEntry(
        "hindsight",
        "topstory.models.hindsight:Hindsight",
        _GREY,
        panel=None,
        parameters=(
            Parameter(
                "folds",
                "choose an event by the other folds of the log; 1 is the paper's way, in-sample",
                metavar="N",
                served=False,
            ),
        ),
        contextual=False,
        needs_log=True,
    ),
    ModelEntry(
        "context-free",
        "topstory.models.context_free:ContextFree",
        _GREY,
        panel="no features",
        parameters=(_PRIOR,),
        contextual=False,
    ),
    ModelEntry(
        "warm",
        "topstory.models.warm:Warm",
        "#e08e2b",
        panel=None,  # as in the paper
        parameters=(
            Parameter("offset", "a table or a function, see topstory.Warm", required=True),
            Parameter("average", "`residual`, or `payoff` as in the paper"),
        ),
    ),
    ModelEntry(
        "segmented",
        "topstory.models.segmented:Segmented",
        "#1f9e83",
        panel="seg",
        parameters=(
            Parameter("segments", "how many segments there are, with an assignment"),
            Parameter("assignment", "users (n, d) -> segments (n,)"),
            _PRIOR,
        ),
    ),
    ModelEntry(
        "disjoint",
        "topstory.models.disjoint:DisjointLinear",
        "#3f7fdb",
        panel="disjoint",
        parameters=(_RIDGE, _PRIOR),
        prior_colour="#1d4f9c",
    ),
    ModelEntry(
        "hybrid",
        "topstory.models.hybrid.model:HybridLinear",
        "#d1477a",
        panel="hybrid",
        parameters=(
            _RIDGE,
            _SHARED_RIDGE,
            _PRIOR,
        ),
        article_features=True,
        prior_colour="#8f1d4c",
        cost=3.0,  # measured at d = 6
    ),
    ModelEntry(
        "logistic-disjoint",
        "topstory.models.logistic.disjoint:LogisticDisjoint",
        "#5aa7c9",
        panel="logistic disjoint",
        parameters=(_PLAIN_RIDGE, _RATE),
    ),
    ModelEntry(
        "logistic-hybrid",
        "topstory.models.logistic.hybrid:LogisticHybrid",
        "#b07ad1",
        panel="logistic hybrid",
        parameters=(_PLAIN_RIDGE, _SHARED_RIDGE, _RATE),
        article_features=True,
        cost=3.0,
    ),
    ModelEntry(
        "low-rank",
        "topstory.models.low_rank:LowRankLinear",
        "#6b8e23",
        panel=None,
        parameters=(
            _PLAIN_RIDGE,
            Parameter("rank", "how many rows are kept beside a diagonal", metavar="N"),
        ),
        cost=3.0,
    ),
)

_EXPLORERS = (
    ExplorerEntry(
        "upper-confidence",
        "topstory.explorers.upper_confidence:UpperConfidence",
        "upper confidence bound",
        parameters=(
            _ALPHA,
            Parameter(
                "delta", "sets alpha to 1 + √(ln(2/D)/2)", metavar="D", served=False, sets="alpha"
            ),
        ),
        marker_colour="#3f7fdb",
        marker_name="Blue circles",  # as in the paper
    ),
    ExplorerEntry(
        "epsilon-greedy",
        "topstory.explorers.epsilon_greedy:EpsilonGreedy",
        "ε-greedy",
        parameters=(
            Parameter(
                "epsilon",
                "share of decisions drawn at random",
                metavar="E",
                symbol="ε",
                grid=(0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.5, 0.8),
                plural="epsilons",
            ),
            Parameter(
                "decay",
                "makes epsilon fall with the trials t: D·(K/t)^⅓ for K articles",
                metavar="D",
                served=False,
                sets="epsilon",
            ),
        ),
        dash="4px,3px",
        opacity=0.5,
        marker="x-thin",
        marker_colour="#e0483e",
        marker_name="Red crosses",  # as in the paper
    ),
    ExplorerEntry(
        "thompson",
        "topstory.explorers.thompson:Thompson",
        "Thompson sampling",
        parameters=(
            _ALPHA,
            Parameter("optimistic", "a score drawn below its estimate counts as the estimate"),
        ),
        dash="1px,3px",
        marker="diamond-open",
        marker_colour="#1f9e83",
        marker_name="Green diamonds",
    ),
    ExplorerEntry(
        "inverse-gap",
        "topstory.explorers.inverse_gap:InverseGap",
        "inverse-gap weighting",
        parameters=(
            Parameter(
                "c",
                "how fast it turns from random to greedy",
                metavar="C",
                grid=(10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 1e5),
                scales=-1,
            ),
            Parameter("floor", "share of decisions drawn at random", metavar="F"),
        ),
        dash="8px,3px",
        opacity=0.75,
        marker="square-open",
        marker_colour="#e08e2b",
        marker_name="Orange squares",
    ),
    ExplorerEntry(
        "softmax",
        "topstory.explorers.softmax:Softmax",
        "softmax",
        parameters=(
            Parameter(
                "temperature",
                "how far below the best an estimate may be, on the payoff's scale",
                metavar="T",
                symbol="T",
                grid=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2),
                scales=1,
            ),
        ),
        dash="8px,3px,1px,3px",
        opacity=0.75,
        marker="triangle-up-open",
        marker_colour="#8a5bd1",
        marker_name="Purple triangles",
    ),
    ExplorerEntry(
        "beta-thompson",
        "topstory.explorers.beta_thompson:BetaThompson",
        "Thompson sampling of click rates",
        parameters=(
            _ALPHA,
            Parameter("successes", "clicks counted before an article's first trial"),
            Parameter("failures", "trials without a click, counted before the first"),
        ),
        dash="1px,5px",
        marker="diamond-open",
        marker_colour="#1f9e83",
        marker_name="Green diamonds",
    ),
    ExplorerEntry(
        "log-upper-confidence",
        "topstory.explorers.log_upper_confidence:LogUpperConfidence",
        "UCB1",
        parameters=(_ALPHA,),
        dash="12px,3px",
        marker_colour="#3f7fdb",
        marker_name="Blue circles",
    ),
    ExplorerEntry(
        "kl-upper-confidence",
        "topstory.explorers.kl_upper_confidence:KLUpperConfidence",
        "KL-UCB",
        parameters=(_ALPHA,),
        dash="12px,3px,1px,3px",
        marker_colour="#3f7fdb",
        marker_name="Blue circles",
    ),
    ExplorerEntry(
        "epoch-greedy",
        "topstory.explorers.epoch_greedy:EpochGreedy",
        "epoch-greedy",
        parameters=(
            Parameter(
                "epochs",
                "after t trials about N·t^⅔ of them were drawn at random",
                metavar="N",
                grid=(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
            ),
        ),
        dash="4px,6px",
        opacity=0.5,
        marker="x-thin",
        marker_colour="#e0483e",
        marker_name="Red crosses",
    ),
    ExplorerEntry("greedy", "topstory.explorers.greedy:Greedy", "greedy"),
    ExplorerEntry("uniform", "topstory.explorers.uniform:Uniform", "uniform"),
)

MODELS = {entry.name: entry for entry in _MODELS}
EXPLORERS = {entry.name: entry for entry in _EXPLORERS}

REGISTRY: dict[str, PolicyEntry] = {
    name: PolicyEntry(paper, MODELS[model], EXPLORERS[explorer])
    for name, paper, model, explorer in (
        ("random", "random", "nothing", "uniform"),
        ("omniscient", "omniscient", "hindsight", "greedy"),
        ("egreedy", "ε-greedy", "context-free", "epsilon-greedy"),
        ("ucb", "ucb", "context-free", "upper-confidence"),
        ("egreedy-warm", "ε-greedy (warm)", "warm", "epsilon-greedy"),
        ("ucb-warm", "ucb (warm)", "warm", "upper-confidence"),
        ("egreedy-seg", "ε-greedy (seg)", "segmented", "epsilon-greedy"),
        ("ucb-seg", "ucb (seg)", "segmented", "upper-confidence"),
        ("egreedy-disjoint", "ε-greedy (disjoint)", "disjoint", "epsilon-greedy"),
        ("linucb-disjoint", "linucb (disjoint)", "disjoint", "upper-confidence"),
        ("egreedy-hybrid", "ε-greedy (hybrid)", "hybrid", "epsilon-greedy"),
        ("linucb-hybrid", "linucb (hybrid)", "hybrid", "upper-confidence"),
    )
} | {
    name: PolicyEntry(title, MODELS[model], EXPLORERS[explorer], in_paper=False)
    for name, title, model, explorer in (
        ("ts", "ts", "context-free", "beta-thompson"),
        ("ts-seg", "ts (seg)", "segmented", "beta-thompson"),
        ("ucb1", "ucb1", "context-free", "log-upper-confidence"),
        ("ucb1-seg", "ucb1 (seg)", "segmented", "log-upper-confidence"),
        ("klucb", "kl-ucb", "context-free", "kl-upper-confidence"),
        ("klucb-seg", "kl-ucb (seg)", "segmented", "kl-upper-confidence"),
        ("epochgreedy-disjoint", "epoch-greedy (disjoint)", "disjoint", "epoch-greedy"),
        ("epochgreedy-hybrid", "epoch-greedy (hybrid)", "hybrid", "epoch-greedy"),
        ("logucb-disjoint", "logistic ucb (disjoint)", "logistic-disjoint", "upper-confidence"),
        ("logucb-hybrid", "logistic ucb (hybrid)", "logistic-hybrid", "upper-confidence"),
        ("logts-disjoint", "logistic ts (disjoint)", "logistic-disjoint", "thompson"),
        ("logts-hybrid", "logistic ts (hybrid)", "logistic-hybrid", "thompson"),
        ("lints-disjoint", "lints (disjoint)", "disjoint", "thompson"),
        ("lints-hybrid", "lints (hybrid)", "hybrid", "thompson"),
        ("linucb-lowrank", "linucb (low rank)", "low-rank", "upper-confidence"),
        ("lints-lowrank", "lints (low rank)", "low-rank", "thompson"),
        ("squarecb-disjoint", "squarecb (disjoint)", "disjoint", "inverse-gap"),
        ("squarecb-hybrid", "squarecb (hybrid)", "hybrid", "inverse-gap"),
        ("softmax-disjoint", "softmax (disjoint)", "disjoint", "softmax"),
        ("softmax-hybrid", "softmax (hybrid)", "hybrid", "softmax"),
    )
}
REGISTRY |= {
    name: PolicyEntry(title, MODELS[model], EXPLORERS[explorer], in_paper=False, from_prior=True)
    for name, title, model, explorer in (
        ("ucb-prior", "ucb (prior)", "context-free", "upper-confidence"),
        ("linucb-disjoint-prior", "linucb (disjoint, prior)", "disjoint", "upper-confidence"),
        ("linucb-hybrid-prior", "linucb (hybrid, prior)", "hybrid", "upper-confidence"),
        ("lints-hybrid-prior", "lints (hybrid, prior)", "hybrid", "thompson"),
    )
}
PAPER = tuple(name for name, entry in REGISTRY.items() if entry.in_paper)


def _by_name(parameters: Iterable[Parameter | None]) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for each in parameters:
        if each is not None:
            found.setdefault(each.name, each)  # the first says the most
    return found


TUNED = _by_name(entry.tuned for entry in REGISTRY.values())  # what tuning searches
SYMBOLS = {name: parameter.symbol or name for name, parameter in TUNED.items()}  # in reports
NUMBERS = _by_name(  # what a number is enough for: the options of `topstory replay`
    parameter
    for parameter in (
        *(each for entry in (*_EXPLORERS, *_MODELS) for each in entry.parameters),
        HALF_LIFE,
    )
    if parameter.metavar is not None
)


def policy(name: str, *, seed: int = 0, **parameters: Any) -> Policy:
    """A policy by name: one of the paper's twelve, or of those found since.

    Args:
        name: `random`, `omniscient`, or `egreedy`, `ucb` and their kinds with `-warm`, `-seg`,
            `-disjoint`, `-hybrid` (`linucb-…` for the last two); `lints-…`, `squarecb-…`,
            `softmax-…`, `epochgreedy-…`, `logucb-…` and `logts-…` with the last two;
            `linucb-lowrank`, `lints-lowrank`; `ts`, `ucb1` and `klucb`, also with `-seg`; some with
            `-prior`: the keys of `REGISTRY`.
        seed: for what is drawn at random.
        parameters: `epsilon` or `decay` (ε-greedy); `alpha` (ucb, linucb, lints, ts, ucb1, klucb)
            or `delta` (ucb, linucb); `optimistic` (lints); `successes`, `failures` (ts); `c`,
            `floor` (squarecb); `temperature` (softmax); `epochs` (epochgreedy);
            `ridge` (disjoint, hybrid, lowrank); `rank` (lowrank); `shared_ridge` (hybrid); `rate`
            (logucb, logts); `prior` (all others but warm and lowrank); `offset`, `average` (warm);
            `segments`, `assignment` (seg); `folds` (omniscient); `half_life` (all that learn), in
            hours.

    >>> policy("linucb-hybrid", alpha=0.3)
    <Policy: hybrid × upper-confidence, ridge=1.0, shared_ridge=1.0, alpha=0.3, seed=0>
    >>> policy("ucb", epsilon=0.1)
    Traceback (most recent call last):
    ...
    TypeError: policy 'ucb' takes no epsilon; it takes prior, alpha, delta, half_life, seed
    """
    entry = REGISTRY.get(name)
    if entry is not None and entry.from_prior and parameters.get("prior") is None:
        raise TypeError(f"policy {name!r} needs prior=: {_PRIOR.help}")
    return without_prior(name, seed=seed, **parameters)


def without_prior(name: str, *, seed: int = 0, **parameters: Any) -> Policy:
    """A policy as `policy` makes it, but without the prior that it may need: to check the rest.

    >>> without_prior("linucb-hybrid-prior", alpha=-1)
    Traceback (most recent call last):
    ...
    ValueError: alpha must be >= 0 (0 is greedy), got -1
    """
    from topstory.policies.policy import Policy

    entry = REGISTRY.get(name)
    if entry is None:
        raise ValueError(f"no policy is called {name!r}; there are {', '.join(REGISTRY)}")
    known = tuple(each.name for each in entry.parameters)
    for parameter in parameters:
        if parameter not in known:
            raise TypeError(
                f"policy {name!r} takes no {parameter}; it takes {', '.join((*known, 'seed'))}"
            )
    for needed in entry.parameters:
        if needed.required and needed.name not in parameters:
            raise TypeError(f"policy {name!r} needs {needed.name}=: {needed.help}")
    for each in (*entry.explorer.parameters, HALF_LIFE):
        value = parameters.get(each.name)
        if value is not None and not isinstance(value, Real):
            raise TypeError(f"{each.name} must be a number, got {value!r}")
    taken = {k: v for k, v in parameters.items() if k in entry.model_parameters}
    half_life = parameters.get(HALF_LIFE.name)
    return Policy(entry.model.load()(**taken), entry.explorer.make(parameters), seed, half_life)


def described(parameter: Parameter) -> str:
    """What a parameter means, and to which policies.

    >>> described(NUMBERS["alpha"])
    'ucb, linucb, ...: how many widths are added to an estimate'
    >>> described(NUMBERS["ridge"])
    "disjoint, hybrid...: weight of each article's prior; auto: found from the trials; paper: 1"
    """
    takers: dict[str, None] = {}  # a policy is called after its explorer, a dash, and its model
    for name, entry in REGISTRY.items():
        explorer, _, model = name.removesuffix("-prior").partition("-")
        if parameter in entry.explorer.parameters:
            takers[explorer] = None
        elif parameter in entry.model.parameters:
            takers[model or name] = None
    if parameter is HALF_LIFE:
        return f"all that learn: {parameter.help}"
    return f"{', '.join(takers)}: {parameter.help}"
