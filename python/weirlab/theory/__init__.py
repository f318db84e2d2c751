"""What theory says of a network under congestion control, in closed form or by small numerics.

| module | answers |
|---|---|
| `linear` | crossover, phase and delay margin of a loop; roots of linear systems with a delay |
| `bcn` | the loops of BCN: increase and decrease |
| `qcn` | the loop of QCN |
| `dcqcn` | the fixed point of DCQCN |
| `hotspot` | severity, degree, their classes; throughput with and without control |
| `large` | large signals: escape from PAUSE saturation, starvation of the hot port |
| `ranking` | which parameters and which traffic stress BCN most |
| `plane` | any of these over two parameters |

Queues count frames, rates frames per second, times seconds, unless a name says otherwise; every model also
takes slots for seconds, as nothing but ratios counts.
"""

from weirlab.theory.bcn import BcnPoint, bcn_gains
from weirlab.theory.dcqcn import DcqcnPoint
from weirlab.theory.hotspot import Hotspot
from weirlab.theory.linear import DoubleIntegratorLoop, linear_delay_margin, rightmost_root
from weirlab.theory.plane import Plane, margin_plane
from weirlab.theory.qcn import QcnPoint

__all__ = [
    "BcnPoint",
    "DcqcnPoint",
    "DoubleIntegratorLoop",
    "Hotspot",
    "Plane",
    "QcnPoint",
    "bcn_gains",
    "linear_delay_margin",
    "margin_plane",
    "rightmost_root",
]
