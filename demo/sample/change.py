"""Give change in as few coins as possible."""

COINS = (200, 100, 50, 20, 10, 5, 2, 1)


def change(cents: int) -> list[int]:
    """Return the coins that make up an amount, largest first."""
    given = []
    for coin in COINS:
        if cents >= coin:
            given.append(coin)
            cents -= coin
    return given
