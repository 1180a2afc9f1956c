"""From a module to bounds: its program, the program over intervals, and the gaps around its weights."""

from intervalnn.network.network import IntervalNetwork
from intervalnn.network.scouts.scout import Scout

__all__ = ["IntervalNetwork", "Scout"]
