//! What agents do to ports: PAUSE, and frames in the control lane.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use proptest::prelude::*;
use weir_core::queue::Lane;
use weir_core::spec::{Limit, Spec, TrafficProbe};
use weir_core::units::{Bytes, Span, Time};
use weir_sim::{Agent, Body, Fabric, Feeding, Plan, PushedSource, Received, Sim, Totals};

use crate::scenarios::{FRAME, constant, drop_tail, one_way, spec};

#[derive(Clone, Copy, Debug)]
enum Act {
    Pause(u32),
    Resume(u32),
    Send(u32, Lane),
}

/// A source of the scenario, or a list of what to do when.
enum Player {
    Source(PushedSource),
    Script(Vec<(Time, Act)>),
}

impl From<PushedSource> for Player {
    fn from(source: PushedSource) -> Player {
        Player::Source(source)
    }
}

impl Agent for Player {
    fn start(&mut self) -> Time {
        match self {
            Player::Source(source) => source.start(),
            Player::Script(acts) => acts.first().map_or(Time::NEVER, |act| act.0),
        }
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        match self {
            Player::Source(source) => source.on_timer(fabric),
            Player::Script(acts) => {
                let (at, act) = acts.remove(0);
                assert_eq!(at, fabric.now());
                match act {
                    Act::Pause(port) => fabric.pause(port),
                    Act::Resume(port) => fabric.resume(port),
                    Act::Send(flow, lane) => fabric.send(flow, FRAME, lane),
                }
                self.start()
            }
        }
    }

    fn on_frame(&mut self, _: &mut Fabric<'_>, _: Received) -> Time {
        self.start()
    }
}

fn play(spec: &Spec, feeding: Feeding, acts: &[(u64, Act)]) -> Totals {
    let plan = Plan::with_feeding(spec.clone(), feeding).expect("a legal spec");
    let acts = acts.iter().map(|&(ns, act)| (Time::ZERO + Span::from_ns(ns), act)).collect();
    Sim::new(&plan, 1, [Player::Script(acts)]).run(|_| ControlFlow::Continue(())).expect("a lawful run")
}

/// When frames of group `group` were delivered, in ns, one interval of 100 ns late at most.
fn deliveries(totals: &Totals, group: u32) -> Vec<u64> {
    let (_, rows) = totals.deliveries.iter().find(|(of, _)| *of == group).expect("a recorded group");
    rows.iter().flat_map(|row| (0..row.frames).map(|_| row.t_ps / 1000)).collect()
}

fn watched(mut spec: Spec) -> Spec {
    let probe = |traffic| TrafficProbe { traffic, every_ps: Span::from_ns(100) };
    spec.record.traffic = (0..spec.traffic.len() as u32).map(probe).collect();
    spec
}

#[test]
fn a_paused_port_ends_its_frame_and_goes_on_when_it_may() {
    // Frames begin at the switch at 1700, 2900, ... and are delivered 1700 later.
    let spec = watched(one_way(1200, Span::from_us(20)));
    let free = play(&spec, Feeding::Pulled, &[]);
    assert_eq!(deliveries(&free, 0)[..4], [3500, 4700, 5900, 7100]);
    let paused = play(&spec, Feeding::Pulled, &[(3000, Act::Pause(3)), (6050, Act::Resume(3))]);
    // The frame that began at 2900 is delivered; the next begins at 6050 and is delivered at 7750.
    assert_eq!(deliveries(&paused, 0)[..4], [3500, 4700, 7800, 9000]);
    assert_eq!(paused.ports[3].pauses.total.ps(), 3_050_000);
    assert_eq!(paused.ports[3].counters.queue_max_bytes, 2 * 1500, "those that came at 4100 and 5300");
}

#[test]
fn a_paused_port_drops_what_its_queue_cannot_hold() {
    let mut spec = one_way(1200, Span::from_us(20));
    spec.queues = vec![drop_tail(vec![3], Limit::Bytes(Bytes::new(4500)))];
    let totals = play(&spec, Feeding::Pulled, &[(0, Act::Pause(3))]);
    assert_eq!((totals.ports[3].counters.frames, totals.ports[3].counters.queue_max_bytes), (0, 4500));
    // Frames arrive at 1700 + 1200 n before 20 us: 16, of which 3 wait.
    assert_eq!(totals.ports[3].counters.drops, 13);
    assert_eq!(totals.ports[3].pauses.total.ps(), 20_000_000, "up to the end of the run");
}

#[test]
fn a_paused_host_keeps_its_backlog() {
    let spec = watched(one_way(1200, Span::from_us(20)));
    let totals = play(&spec, Feeding::Pushed, &[(500, Act::Pause(0)), (5000, Act::Resume(0))]);
    assert_eq!(deliveries(&totals, 0)[..3], [3500, 8500, 9700]);
    assert_eq!(totals.ports[0].counters.drops, 0);
}

#[test]
#[should_panic(expected = "sources are pushed at a port that can be paused")]
fn a_port_that_pulls_its_sources_cannot_be_paused() {
    play(&one_way(1200, Span::from_us(20)), Feeding::Pulled, &[(500, Act::Pause(0))]);
}

#[test]
fn a_resume_without_a_pause_changes_nothing() {
    let spec = one_way(1200, Span::from_us(20));
    let acts = [(2000, Act::Resume(3)), (2900, Act::Resume(3))];
    assert_eq!(play(&spec, Feeding::Pulled, &acts).flows, play(&spec, Feeding::Pulled, &[]).flows);
}

#[test]
fn a_control_frame_overtakes_data_at_every_queue_and_passes_a_pause() {
    // Hosts 0 and 1 fill port 5 of the switch; host 1 also sends a control frame of a group of its own.
    let mut spec = spec(3, vec![constant(0, 2, 600), constant(1, 2, 600)], Span::from_us(60));
    let mut control = spec.traffic[0].clone();
    control.name = "control".into();
    control.sources = vec![weir_core::spec::Source { stop_ps: Time::ZERO, ..constant(1, 2, 600) }];
    spec.traffic.push(control);
    let spec = watched(spec);
    let flow = 2;
    // It begins at its host at 3600, after the frame in transmission, and reaches the switch at 5300, when another
    // frame begins there; after that, at 6500, it goes, and is delivered at 8200.
    let send = (2500, Act::Send(flow, Lane::Control));
    let totals = play(&spec, Feeding::Pushed, &[send]);
    let [delivered] = deliveries(&totals, 1)[..] else { panic!("one control frame") };
    assert_eq!(delivered, 8300);
    let late = play(&spec, Feeding::Pushed, &[(2500, Act::Send(flow, Lane::Data))]);
    assert!(deliveries(&late, 1)[0] > 12_000);
    // Past a paused port.
    let totals = play(&spec, Feeding::Pushed, &[(1000, Act::Pause(5)), send]);
    assert_eq!((deliveries(&totals, 0).len(), deliveries(&totals, 1).len()), (0, 1));
    assert_eq!(totals.flows[flow as usize].sent_frames, 1);
}

/// Answers each token with one less, later by as many microseconds, down to zero.
enum Ball {
    Source(PushedSource),
    Player { receives: u32, sends: u32, waiting: Option<(Time, u64)>, seen: Rc<RefCell<Vec<(u64, u64)>>> },
}

impl From<PushedSource> for Ball {
    fn from(source: PushedSource) -> Ball {
        Ball::Source(source)
    }
}

impl Agent for Ball {
    fn receives(&self) -> Vec<u32> {
        match self {
            Ball::Source(_) => vec![],
            Ball::Player { receives, .. } => vec![*receives],
        }
    }

    fn start(&mut self) -> Time {
        match self {
            Ball::Source(source) => source.start(),
            Ball::Player { waiting, .. } => waiting.map_or(Time::NEVER, |(at, _)| at),
        }
    }

    fn on_timer(&mut self, fabric: &mut Fabric<'_>) -> Time {
        match self {
            Ball::Source(source) => source.on_timer(fabric),
            Ball::Player { sends, waiting, .. } => {
                let (at, token) = waiting.take().expect("the timer was set");
                assert_eq!(at, fabric.now());
                fabric.send_loaded(*sends, FRAME, Lane::Data, Body::Token(token));
                Time::NEVER
            }
        }
    }

    fn on_frame(&mut self, fabric: &mut Fabric<'_>, frame: Received) -> Time {
        let Ball::Player { receives, waiting, seen, .. } = self else { panic!("sources receive nothing") };
        let Body::Token(token) = frame.body else { panic!("a token") };
        assert_eq!((frame.flow, frame.size), (*receives, FRAME));
        seen.borrow_mut().push((fabric.now().ps() / 1000, token));
        *waiting = token.checked_sub(1).map(|less| (fabric.now() + Span::from_us(less), less));
        self.start()
    }
}

#[test]
fn agents_play_ball_with_frames_that_carry_something() {
    // Flows 0 and 1 between hosts 0 and 1 belong to sources that never send.
    let silent = |from, to| weir_core::spec::Source { stop_ps: Time::ZERO, ..constant(from, to, 1000) };
    let plan = Plan::new(spec(2, vec![silent(0, 1), silent(1, 0)], Span::from_us(100))).expect("a legal spec");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let player = |receives, sends, waiting| Ball::Player { receives, sends, waiting, seen: Rc::clone(&seen) };
    let players = [player(1, 0, Some((Time::ZERO, 3))), player(0, 1, None)];
    let totals = Sim::new(&plan, 1, players).run(|_| ControlFlow::Continue(())).expect("a lawful run");
    // A frame takes 3400 ns; the answers wait for 2, 1 and 0 us.
    assert_eq!(*seen.borrow(), [(3400, 3), (8800, 2), (13_200, 1), (16_600, 0)]);
    assert_eq!((totals.flows[0].delivered_frames, totals.flows[1].delivered_frames), (2, 2));
}

proptest! {
    /// Wherever and whenever ports are paused: frames are conserved (each run checks it), none is lost without a
    /// limit, and the pauses add up.
    #[test]
    fn pauses_lose_nothing(
        pauses in prop::collection::vec((0u64..3000, 0u32..6, any::<bool>(), 0u8..8), 0..60), gap in 600u64..3000,
    ) {
        let spec = spec(3, vec![constant(0, 2, gap), constant(1, 2, gap), constant(2, 0, gap)], Span::from_us(100));
        let (mut acts, mut now, mut paused) = (Vec::new(), 0, [None; 6]);
        let mut expected = [0; 6];
        for (after, port, pause, control) in pauses {
            now += after;
            if control == 0 {
                acts.push((now, Act::Send(0, Lane::Control)));
            }
            acts.push((now, if pause { Act::Pause(port) } else { Act::Resume(port) }));
            let since: &mut Option<u64> = &mut paused[port as usize];
            match (pause, *since) {
                (true, None) => *since = Some(now),
                (false, Some(began)) if now < 100_000 => {
                    expected[port as usize] += now - began;
                    *since = None;
                }
                _ => {}
            }
        }
        for (sum, since) in expected.iter_mut().zip(paused) {
            *sum += since.map_or(0, |began: u64| 100_000u64.saturating_sub(began));
        }
        let totals = play(&spec, Feeding::Pushed, &acts);
        prop_assert!(totals.drops.is_empty());
        let found: Vec<u64> = totals.ports.iter().map(|port| port.pauses.total.ps() / 1000).collect();
        prop_assert_eq!(found, expected);
        for flow in &totals.flows {
            prop_assert!(flow.sent_frames == flow.delivered_frames + flow.live_frames);
        }
    }
}
