"""Statistics: pure functions of numbers, one definition each.

Reading order: `samples` (quantiles, spread, frequencies), `replicates` (means with their intervals), `fits`
(lines and curves, R^2), `latency` (round-trip times under load), `streams` (several streams at once),
`knee` (how many are enough), `resampling` (how far statistics of two sets of runs lie apart),
`responsiveness` (what other tools report of latency under load).

All raise ValueError, saying what is wrong and its value, when they are given too little or what has no
meaning: none falls back on something else.
"""

from weirlab.stats.blocks import block_probability as block_probability
from weirlab.stats.distributions import t_quantile as t_quantile
from weirlab.stats.fits import (
    fit_exponential as fit_exponential,
    fit_exponential_counts as fit_exponential_counts,
    fit_line as fit_line,
    fit_logarithm as fit_logarithm,
    fit_proportion as fit_proportion,
    r_squared as r_squared,
)
from weirlab.stats.knee import (
    DEFINITIONS as DEFINITIONS,
    Sweep as Sweep,
    highest_power as highest_power,
    knee_interval as knee_interval,
    least_delay_per_goodput as least_delay_per_goodput,
    near_maximum as near_maximum,
    two_segments as two_segments,
)
from weirlab.stats.latency import (
    data_rates as data_rates,
    fit_queueing as fit_queueing,
    min_max_predictability as min_max_predictability,
    min_max_variability as min_max_variability,
    probe_loss as probe_loss,
    rate_by_size as rate_by_size,
    rate_predictability as rate_predictability,
    rate_variability as rate_variability,
    rtt_difference as rtt_difference,
)
from weirlab.stats.replicates import Interval as Interval, mean_interval as mean_interval
from weirlab.stats.resampling import (
    STATISTICS as STATISTICS,
    Margin as Margin,
    mean_margin as mean_margin,
    statistic_margin as statistic_margin,
)
from weirlab.stats.responsiveness import (
    Responsiveness as Responsiveness,
    foreign_per_minute as foreign_per_minute,
    is_stable as is_stable,
    responsiveness as responsiveness,
    round_trips_per_minute as round_trips_per_minute,
    trimmed_mean as trimmed_mean,
    under_load as under_load,
)
from weirlab.stats.samples import (
    ecdf as ecdf,
    frequencies as frequencies,
    interquartile_range as interquartile_range,
    median as median,
    quantile as quantile,
    spread as spread,
)
from weirlab.stats.sequential import enough as enough
from weirlab.stats.streams import (
    aggregate_goodput as aggregate_goodput,
    cpu_cost as cpu_cost,
    cpu_percent as cpu_percent,
    duration_trend as duration_trend,
    effective_window as effective_window,
    jain_index as jain_index,
    linear_range as linear_range,
    saturates_at as saturates_at,
    shares as shares,
    unevenness as unevenness,
    window_bound as window_bound,
)
