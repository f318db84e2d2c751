//! Controllers of all kinds, and those that a program has beside them.

use weir_core::SpecError;
use weir_core::cc::{self, Allowance, Config, CongestionControl, Controllers, Custom, Needs, Pace, SenderEvent, Setup};
use weir_core::tcp::{self, Receiver, Sender};
use weir_core::units::{Bytes, Span, Time};

/// Sends as many segments in each round as it was asked to, and a segment more after each wait.
#[derive(Debug)]
struct Ticking {
    segment: u64,
    segments: u64,
    wait: Span,
    due: Time,
    /// When its timer ran out.
    ticks: Vec<Time>,
}

impl CongestionControl for Ticking {
    fn on_event(&mut self, now: Time, event: &SenderEvent) {
        match event {
            SenderEvent::Established { .. } => self.due = now + self.wait,
            SenderEvent::Timer => {
                self.ticks.push(now);
                self.segments += 1;
                self.due = now + self.wait;
            }
            _ => {}
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::of_window(Bytes::new(self.segments * self.segment), Bytes::new(u64::MAX))
    }

    fn poll_timeout(&self) -> Time {
        self.due
    }

    fn needs(&self) -> Needs {
        Needs { timer: true, ..Needs::PLAIN }
    }
}

fn ticking(custom: &Custom, setup: Setup<'_>) -> Result<Box<dyn CongestionControl>, SpecError> {
    let segment = setup.connection.segment_bytes.count();
    let Some(&wait) = custom.settings.get("wait_ms") else {
        return Err(SpecError::new("/settings/wait_ms", "how long it waits (got nothing)"));
    };
    let wait = Span::from_ms(wait as u64);
    Ok(Box::new(Ticking { segment, segments: 1, wait, due: Time::NEVER, ticks: vec![] }))
}

#[test]
fn a_timer_of_a_controller_runs_out_when_it_is_due_and_nothing_else_happens() {
    let connection =
        tcp::Config { congestion_control: Config::custom("ticking", &[("wait_ms", 30.0)]), ..tcp::Config::default() };
    let known = Controllers::new().add("ticking", ticking);
    let control = known.make(Setup::plain(&connection)).expect("it is known");
    let (mut sender, mut receiver) = (Sender::new(&connection, control), Receiver::new(&connection));
    let mut now = Time::ZERO;
    sender.open(now);
    sender.write_endlessly();
    let syn = sender.poll_transmit(now).expect("a SYN");
    receiver.handle_segment(now, &syn);
    let answer = receiver.poll_transmit(now).expect("an answer");
    sender.handle_segment(now, &answer);
    // Nothing is acknowledged from now on.
    let mut windows = vec![];
    for _ in 0..4 {
        while sender.poll_transmit(now).is_some() {}
        assert_eq!(sender.poll_timeout(), now + Span::from_ms(30));
        now = sender.poll_timeout();
        sender.handle_timeout(now);
        windows.push(sender.window().count() / 1448);
    }
    assert_eq!(windows, [2, 3, 4, 5]);
    assert_eq!(sender.counters().timeouts, 0);
}

#[test]
fn controllers_that_nobody_has_added_are_refused_and_so_are_wrong_settings() {
    let make = |control, known: &Controllers| {
        let connection = tcp::Config { congestion_control: control, ..tcp::Config::default() };
        known.make(Setup::plain(&connection)).map(|_| ()).map_err(|fault| (fault.pointer, fault.message))
    };
    let known = Controllers::new().add("ticking", ticking);
    let (pointer, message) = make(Config::custom("tacking", &[]), &known).expect_err("another name");
    assert_eq!(pointer, "/name");
    assert!(message.contains("ticking (got tacking)"), "{message}");
    let (pointer, _) = make(Config::custom("ticking", &[]), &known).expect_err("no settings");
    assert_eq!(pointer, "/settings/wait_ms");
    assert_eq!(make(Config::reno(), &Controllers::new()), Ok(()));
}

#[test]
fn what_a_scenario_without_settings_means_is_legal_and_survives_the_boundary() {
    let kinds = Config::kinds();
    assert!(kinds.len() >= 6);
    for kind in kinds {
        assert!(kind.about.ends_with('.') && !kind.about.contains("[`"), "{}", kind.about);
        let Some(preset) = kind.preset else { continue };
        preset.check().expect("the preset is legal");
        let json = serde_json::to_string(&preset).expect("it has text keys only");
        assert_eq!(serde_json::from_str::<Config>(&json).expect("it is its own"), preset);
    }
}

/// What the window and the pace say is finite from the first moment, whatever is reported in whichever order.
#[test]
fn every_controller_bears_every_event_before_anything_else_has_happened() {
    let events = [
        SenderEvent::LostSyn,
        SenderEvent::Established { rtt: None },
        SenderEvent::LongIdle,
        SenderEvent::Restart,
        SenderEvent::Spurious,
        SenderEvent::Repaired,
        SenderEvent::Timer,
        SenderEvent::Idle,
        SenderEvent::Congestion { cause: cc::Cause::Loss, flight: Bytes::ZERO },
        SenderEvent::Congestion { cause: cc::Cause::EcnEcho, flight: Bytes::ZERO },
        SenderEvent::Recovered { window: Bytes::new(1448) },
        SenderEvent::Marks(cc::Marks { is_echo: true, may_reduce: true, number: 1, next: 2, ..cc::Marks::default() }),
        SenderEvent::Collapse,
    ];
    for preset in Config::kinds().into_iter().filter_map(|kind| kind.preset) {
        for first in &events {
            for second in &events {
                let connection = tcp::Config { congestion_control: preset.clone(), ..tcp::Config::default() };
                let mut control = Controllers::new().make(Setup::plain(&connection)).expect("it is built in");
                control.on_event(Time::ZERO, first);
                control.on_event(Time::ZERO, second);
                let allowance = control.allowance();
                assert!(allowance.window >= Bytes::new(1), "{preset:?} {first:?} {second:?}");
                if let Pace::Rate { rate, .. } = allowance.pace {
                    assert!(rate.bps() > 0, "{preset:?} {first:?} {second:?}");
                }
            }
        }
    }
}
