"""What a payoff is called: a click has a rate, any other payoff a mean."""


def mean_payoff(binary: bool) -> str:
    """The mean payoff of trials in a word.

    >>> mean_payoff(True), mean_payoff(False)
    ('CTR', 'payoff')
    """
    return "CTR" if binary else "payoff"


def paid_units(binary: bool) -> str:
    """What a sum of payoffs is counted in.

    >>> paid_units(True), paid_units(False)
    ('clicks', 'of payoff')
    """
    return "clicks" if binary else "of payoff"
