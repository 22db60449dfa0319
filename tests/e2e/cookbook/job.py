# SPDX-License-Identifier: MIT
"""Two threads that order, for docs/cookbook-snapshots.md: both wait for the stock."""

import _thread

waiting = _thread.allocate_lock()


class Cart:
    def __init__(self, stock):
        self.stock = stock

    def order(self, wanted):
        total = sum(wanted.values())
        (waiting.acquire(False) or print("READY", flush=True), self.stock.acquire())  # the second one is READY
        return total


def main():
    stock = _thread.allocate_lock()
    stock.acquire()
    cart = Cart(stock)
    _thread.start_new_thread(cart.order, ({"plum": 1},))
    while not waiting.locked():
        pass
    cart.order({"apple": 3, "pear": 12})


main()
