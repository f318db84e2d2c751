//! The controller of this crate in a simulated network.

use weir_core::cc::Config;
use weir_core::units::Span;
use weir_example_controller::{lossy, parts};
use weir_sim::{Plan, Progress, simulate};

/// Between two losses of a window w (in segments) ln w grows by a per round trip, and each loss takes -ln(1 - b) of it: with p losses
/// per segment the mean window is a / (-p ln(1 - b)). Losses of the same round trip count once, so that it is up to p w larger.
#[test]
fn the_window_is_that_of_the_law_and_inverse_to_the_losses() {
    let (increase, decrease) = (0.002, 0.125);
    for (loss, duration) in [(2e-4, Span::from_ms(300_000)), (1e-4, Span::from_ms(300_000))] {
        let control = Config::custom("scalable", &[("increase", increase), ("decrease", decrease)]);
        let plan = Plan::with_parts(lossy(control, loss, duration), parts()).expect("a legal spec");
        let runs = simulate(&plan, &[1, 2, 3, 4, 5, 6], 1, &Progress::new()).expect("a run");
        let window = |run: &weir_sim::Totals| {
            let of = &run.connections[0];
            let round_trip = of.min_rtt.expect("a sample").as_secs_f64();
            of.sender.acked_bytes as f64 / 1448.0 / duration.as_secs_f64() * round_trip
        };
        let windows: Vec<f64> = runs.iter().map(window).collect();
        let (count, law) = (windows.len() as f64, increase / (-loss * (1.0 - decrease).ln()));
        let mean = windows.iter().sum::<f64>() / count;
        let variance = windows.iter().map(|each| (each - mean) * (each - mean)).sum::<f64>() / (count - 1.0);
        let error = (variance / count).sqrt();
        println!("{mean} +- {error} of {law}");
        assert!(mean > law - 4.0 * error && mean < law * (1.0 + loss * law) + 4.0 * error, "{mean} {error} {law}");
    }
}

#[test]
fn what_nobody_knows_is_refused_with_its_place() {
    let refused = |control, known| {
        let fault = Plan::with_parts(lossy(control, 0.0, Span::from_ms(10)), known).expect_err("it is unknown");
        (fault.pointer, fault.message)
    };
    let at = "/traffic/0/tcp/config/congestion_control";
    let (pointer, message) = refused(Config::custom("scaleable", &[]), parts());
    assert_eq!((pointer, message.contains("scalable (got scaleable)")), (format!("{at}/name"), true), "{message}");
    let (pointer, message) = refused(Config::custom("scalable", &[("b", 0.5)]), parts());
    assert_eq!((pointer, message.contains("(got 'b')")), (format!("{at}/settings/b"), true), "{message}");
    let (pointer, _) = refused(Config::custom("scalable", &[("increase", 2.0)]), parts());
    assert_eq!(pointer, format!("{at}/settings/increase"));
    let (pointer, _) = refused(Config::custom("scalable", &[]), weir_sim::Parts::default());
    assert_eq!(pointer, format!("{at}/name"));
}
