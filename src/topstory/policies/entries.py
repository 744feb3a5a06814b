"""What the registry records about a parameter, a model, an explorer and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topstory.explorers import Explorer
    from topstory.models import Model


_DARK = "#4a4f59"

Setting = float | str  # of a parameter: a number, or one of its words


def settings_of(parameters: Mapping[str, Any]) -> dict[str, Setting]:
    """Those parameters that are numbers or words.

    >>> settings_of({"ridge": "auto", "alpha": 1, "segments": None})
    {'ridge': 'auto', 'alpha': 1.0}
    """
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in parameters.items()
        if isinstance(value, int | float | str)
    }


def listed(settings: Mapping[str, Setting]) -> str:
    """Settings in a line.

    >>> listed({"ridge": "auto", "alpha": 0.1})
    'ridge auto, alpha 0.1'
    """
    return ", ".join(
        f"{name} {value if isinstance(value, str) else f'{value:g}'}"
        for name, value in settings.items()
    )


@dataclass(frozen=True)
class Parameter:
    """An argument of a model or an explorer.

    Its default and its bounds are those of the class that takes it, which checks every value.
    """

    name: str
    help: str  # without the names of the policies, which `topstory replay --help` puts before it
    metavar: str | None = None  # on the command line; None: it is no number, only Python takes it
    words: tuple[str, ...] = ()  # settings with a name, beside numbers
    served: bool = True  # whether the service's configuration takes it, if it is a number
    required: bool = False
    symbol: str = ""  # in reports: ε
    grid: tuple[float, ...] = ()  # the values that tuning tries
    plural: str = ""  # names the argument, and the option, of a study that sets the grid
    scales: int = 0  # with the payoff's unit: 1 as much, -1 inversely, 0 not at all
    sets: str = ""  # the parameter that it stands for: only one of the two can be given


@dataclass(frozen=True)
class ModelEntry:
    """A model: its class, its parameters, and how reports draw its policies."""

    name: str  # the class's own: stored policies name it, so it never changes
    path: str  # of the class, which is imported when first used: "topstory.models.warm:Warm"
    colour: str
    panel: str | None  # of Figure 3; None: the figure leaves the model out
    parameters: tuple[Parameter, ...] = ()
    contextual: bool = True  # whether its estimates depend on the user
    article_features: bool = False  # whether articles share what they learn through features
    needs_log: bool = False  # whether only `ts.replay` can run it
    prior_colour: str = _DARK  # of its policies with a learned prior
    cost: float = 1.0  # time of one replayed event, compared with a context-free model

    def load(self) -> type[Model]:
        """Import the class."""
        found: type[Model] = resolve_name(self.path)
        return found


@dataclass(frozen=True)
class ExplorerEntry:
    """An explorer: its class, its parameters, and how reports draw its policies."""

    name: str  # the class's own: stored policies name it, so it never changes
    path: str  # of the class, which is imported when first used
    title: str
    parameters: tuple[Parameter, ...] = ()  # the first one is what tuning searches
    dash: str = "solid"  # of a line
    opacity: float = 1.0  # of a bar
    marker: str = "circle-open"  # of a point in Figure 3
    marker_colour: str = "#8b909a"
    marker_name: str = "Grey circles"  # colour and marker in words, for the caption

    def load(self) -> type[Explorer]:
        """Import the class."""
        found: type[Explorer] = resolve_name(self.path)
        return found

    def make(self, parameters: Mapping[str, Any]) -> Explorer:
        """The explorer with those of the parameters that it takes."""
        names = {parameter.name for parameter in self.parameters}
        return self.load().of(**{k: v for k, v in parameters.items() if k in names})


HALF_LIFE = Parameter(
    "half_life",
    "hours after which a trial counts half",
    metavar="H",
    served=False,  # nothing moves the clock of a policy that is served
)


@dataclass(frozen=True)
class PolicyEntry:
    """A policy: the paper's name for it, its model and its explorer."""

    paper: str  # or, of a policy that the paper does not have, the name in tables and figures
    model: ModelEntry
    explorer: ExplorerEntry
    in_paper: bool = True  # one of the twelve that the paper compares, which `all` stands for
    from_prior: bool = False  # whether it needs a prior, learned from an earlier log

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes besides a seed."""
        return (*self.model.parameters, *self.explorer.parameters, *self.common)

    @property
    def common(self) -> tuple[Parameter, ...]:
        """What every policy takes that learns."""
        return (HALF_LIFE,) if self.explorer.parameters else ()

    @property
    def model_parameters(self) -> tuple[str, ...]:
        """The names of what the model takes."""
        return tuple(parameter.name for parameter in self.model.parameters)

    @property
    def tuned(self) -> Parameter | None:
        """The parameter that tuning searches; None if the explorer has none."""
        return self.explorer.parameters[0] if self.explorer.parameters else None

    @property
    def contextual(self) -> bool:
        """Whether its estimates depend on the user."""
        return self.model.contextual
