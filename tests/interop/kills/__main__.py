"""Runs a campaign, prints its table, and fails if anything in it is wrong."""

import argparse
import asyncio
import pathlib
import random
import sys
import tempfile

from . import cell, faults
from .campaign import Campaign
from .report import table


def arguments():
    parser = argparse.ArgumentParser(prog="python -m kills", description=__doc__)
    parser.add_argument("--rounds", type=int, help="how many faults there are (one of each kind)")
    parser.add_argument(
        "--nodes", type=int, default=0, help="a cell of so many nodes, with its engines (0: one node alone)"
    )
    parser.add_argument("--redis", action="store_true", help="nodes of a cell write their sessions down in Redis")
    parser.add_argument("--clients", type=int, default=300, help="devices; one of ten speaks the light protocol (300)")
    parser.add_argument("--rate", type=int, default=200, help="notifications per second, and half as many chats (200)")
    parser.add_argument("--seed", type=int, help="who sends what to whom, and which faults come when (random)")
    parser.add_argument(
        "--fault",
        choices={*faults.KINDS, *cell.KINDS, *cell.REDIS_KINDS},
        help="only faults of this kind (all, each as often as the others)",
    )
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the node's data, which stays")
    wanted = parser.parse_args()
    if wanted.redis and not wanted.nodes:
        parser.error("--redis: only with --nodes")
    kinds = faults.KINDS
    if wanted.nodes:
        kinds = cell.KINDS | cell.REDIS_KINDS if wanted.redis else cell.KINDS
    if wanted.fault not in (None, *kinds):
        parser.error(f"--fault {wanted.fault}: here there are {', '.join(kinds)}")
    wanted.rounds = len(kinds) if wanted.rounds is None else wanted.rounds
    return wanted


def main():
    wanted = arguments()
    seed = random.SystemRandom().randrange(2**32) if wanted.seed is None else wanted.seed
    print(f"seed {seed}", flush=True)
    tell = lambda text: print(text, flush=True)  # noqa: E731
    with tempfile.TemporaryDirectory(prefix="carillon-kills-") as folder:
        campaign = Campaign(wanted.keep or folder, seed, wanted.clients, wanted.rate, wanted.nodes, wanted.redis)
        asyncio.run(campaign.run(wanted.rounds, wanted.fault, tell))
    print(table(campaign))
    return 1 if campaign.ledger.violations else 0


sys.exit(main())
