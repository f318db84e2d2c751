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

Names are in the modules: a command loads only the models that it needs.
"""
