//! The rates that fleets try, and the range that they leave.

use super::fleet::Aggregate;
use super::log::Ending;

/// A search for the range of the available bandwidth. Rates in bit/s.
///
/// The greatest rate below it and the least above it draw nearer to each other by halves. Rates between of which fleets say
/// neither form the grey region: the search then ends when its ends are known as well.
///
/// Source: Jain & Dovrolis 2003; pathload 1.3.2
#[derive(Clone, Debug)]
pub struct RateSearch {
    /// Greatest rate that was below.
    low: f64,
    /// Least rate that was above.
    high: Option<f64>,
    grey: Option<(f64, f64)>,
    rate: f64,
    least: f64,
    most: f64,
    /// Width of the range at which it ends.
    resolution: f64,
    /// The same of what lies next to the grey region.
    grey_resolution: f64,
    unusable: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// A fleet at this rate.
    Fleet(f64),
    /// The range that was found.
    Found {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
        /// Why the search ended.
        ending: Ending,
    },
}

impl RateSearch {
    /// Between `least` and `most`, from `first` on, the rate at which a train of packets back to back arrived.
    pub fn new(first: f64, least: f64, most: f64, resolution: Option<f64>) -> RateSearch {
        let resolution = resolution.unwrap_or(RESOLUTION * first);
        let grey_resolution = (GREY_RESOLUTION * first).min(MOST_GREY_RESOLUTION);
        let rate = first.clamp(least, most);
        RateSearch { low: 0.0, high: None, grey: None, rate, least, most, resolution, grey_resolution, unusable: 0 }
    }

    /// The rate of the present fleet.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The present fleet says this.
    pub(crate) fn on_fleet(&mut self, aggregate: Aggregate) -> Next {
        let rate = self.rate;
        match aggregate {
            Aggregate::Above => self.high = Some(self.high.map_or(rate, |high| high.min(rate))),
            Aggregate::Below => self.low = self.low.max(rate),
            Aggregate::Grey => {
                let (low, high) = self.grey.unwrap_or((rate, rate));
                self.grey = Some((low.min(rate), high.max(rate)));
            }
            Aggregate::Unusable => {
                self.unusable += 1;
                if self.unusable <= RETRIES {
                    return Next::Fleet(rate);
                }
                return self.found(Ending::Unusable);
            }
        }
        self.unusable = 0;
        // A grey region lies between what is below and what is above; what else was said of it before is out of date.
        let high = self.high.unwrap_or(f64::INFINITY);
        self.grey = self.grey.filter(|grey| grey.0 <= high && grey.1 >= self.low);
        self.grey = self.grey.map(|(one, other)| (one.max(self.low), other.min(high)));
        if aggregate == Aggregate::Below && rate >= self.most {
            return self.found(Ending::AboveMost);
        }
        if aggregate == Aggregate::Grey && rate >= self.most {
            // The region is open above: only its lower end is looked for.
            self.high = Some(self.most);
        }
        if aggregate == Aggregate::Above && rate <= self.least {
            return self.found(Ending::BelowLeast);
        }
        let Some(high) = self.high else {
            let factor = if aggregate == Aggregate::Grey { GREY_STEP } else { STEP };
            return self.fleet(factor * rate);
        };
        if high - self.low <= self.resolution {
            return self.found(Ending::Resolution);
        }
        let Some((grey_low, grey_high)) = self.grey else { return self.fleet((self.low + high) / 2.0) };
        let (below, above) = (grey_low - self.low, high - grey_high);
        if below <= self.grey_resolution && above <= self.grey_resolution {
            return self.found(Ending::GreyRegion);
        }
        // The side about which less is known.
        self.fleet(if above >= below { (grey_high + high) / 2.0 } else { (self.low + grey_low) / 2.0 })
    }

    fn fleet(&mut self, rate: f64) -> Next {
        self.rate = rate.clamp(self.least, self.most);
        Next::Fleet(self.rate)
    }

    /// The range: that of the grey region where it ended there.
    fn found(&self, ending: Ending) -> Next {
        let (low, high) = match (ending, self.grey) {
            (Ending::GreyRegion, Some(grey)) => grey,
            _ => (self.low, self.high.unwrap_or(self.most)),
        };
        Next::Found { low, high, ending }
    }
}

/// The search ends at this part of the first rate.
///
/// Source: pathload 1.3.2
const RESOLUTION: f64 = 0.02;
const GREY_RESOLUTION: f64 = 0.05;
const MOST_GREY_RESOLUTION: f64 = 12e6;
/// As long as no rate was above.
const STEP: f64 = 2.0;
const GREY_STEP: f64 = 1.5;
/// Fleets of the same rate that may be unusable in a row before the search ends.
const RETRIES: u32 = 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A path whose available bandwidth varies from `low` to `high`.
    fn searched(first: f64, low: f64, high: f64) -> (f64, f64, Ending, usize) {
        let mut search = RateSearch::new(first, 1e6, 1e9, None);
        for fleets in 1..200 {
            let aggregate = match search.rate() {
                rate if rate < low => Aggregate::Below,
                rate if rate > high => Aggregate::Above,
                _ => Aggregate::Grey,
            };
            if let Next::Found { low, high, ending } = search.on_fleet(aggregate) {
                return (low, high, ending, fleets);
            }
        }
        panic!("the search does not end")
    }

    #[test]
    fn a_steady_path_is_bracketed_as_closely_as_was_asked() {
        let (low, high, ending, fleets) = searched(800e6, 687e6, 687e6);
        assert!(low <= 687e6 && high >= 687e6 && high - low <= 0.02 * 800e6, "{low} {high}");
        assert_eq!(ending, Ending::Resolution);
        // From 800 down to 16 Mbit/s by halves.
        assert!(fleets <= 7, "{fleets}");
    }

    #[test]
    fn a_range_that_varies_is_found_with_both_its_ends() {
        let (low, high, ending, _) = searched(800e6, 600e6, 700e6);
        assert_eq!(ending, Ending::GreyRegion);
        assert!((low - 600e6).abs() <= 12e6 && (high - 700e6).abs() <= 12e6, "{low} {high}");
    }

    #[test]
    fn a_range_that_is_open_above_has_its_lower_end_found() {
        let (low, high, ending, _) = searched(800e6, 600e6, 2e9);
        assert_eq!(ending, Ending::GreyRegion);
        assert!((low - 600e6).abs() <= 12e6 && (high - 1e9).abs() < 1.0, "{low} {high}");
    }

    #[test]
    fn what_lies_outside_of_the_rates_is_said_to() {
        assert_eq!(searched(400e6, 2e9, 2e9).2, Ending::AboveMost);
        assert_eq!(searched(10e6, 1e5, 1e5).2, Ending::BelowLeast);
    }

    #[test]
    fn a_fleet_that_cannot_be_used_is_repeated_once() {
        let mut search = RateSearch::new(5e8, 1e6, 1e9, None);
        assert_eq!(search.on_fleet(Aggregate::Unusable), Next::Fleet(5e8));
        let Next::Found { ending, .. } = search.on_fleet(Aggregate::Unusable) else { panic!("it goes on") };
        assert_eq!(ending, Ending::Unusable);
    }

    proptest! {
        #[test]
        fn every_search_ends_and_its_range_touches_that_of_the_path(
            first in 1e6f64..1e9, low in 2e6f64..9e8, width in 0.0f64..3e8,
        ) {
            let high = (low + width).min(9.5e8);
            let (found_low, found_high, _, fleets) = searched(first, low, high);
            prop_assert!(found_low <= found_high && fleets < 60);
            let slack = 12e6_f64.max(0.02 * first);
            prop_assert!(found_low <= high + slack && found_high >= low - slack, "{} {}", found_low, found_high);
        }

        /// Whatever fleets say, in whatever order, the search ends or goes on within its bounds.
        #[test]
        fn no_answer_leads_out_of_bounds(answers in prop::collection::vec(0u8..4, 1..100)) {
            let mut search = RateSearch::new(4e8, 1e6, 1e9, None);
            for answer in answers {
                let aggregate = [Aggregate::Above, Aggregate::Below, Aggregate::Grey, Aggregate::Unusable][answer as usize];
                match search.on_fleet(aggregate) {
                    Next::Fleet(rate) => prop_assert!((1e6..=1e9).contains(&rate)),
                    Next::Found { low, high, .. } => { prop_assert!(low >= 0.0 && high <= 1e9); break }
                }
            }
        }
    }
}
