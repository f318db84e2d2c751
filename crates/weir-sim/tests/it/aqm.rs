//! Networks whose queues drop before they are full.

use proptest::prelude::*;
use weir_core::network::Topology;
use weir_core::spec::aqm::{Aqm, Codel, DualPi2, DualScheduler, FqCodel, Pie};
use weir_core::spec::{Discipline, Limit, Marking, MarkingTime, QueueRule, Record, Spec};
use weir_core::units::{Bytes, Span};
use weir_sim::{DropCause, Feeding};

use crate::scenarios::{any_scenario, constant, run, run_fed, spec};

/// So impatient that runs of microseconds show them.
fn any_aqm() -> impl Strategy<Value = Aqm> {
    let (target_ps, interval_ps) = (Span::from_us(2), Span::from_us(8));
    any::<bool>().prop_flat_map(move |ecn| {
        let quantum_bytes = Bytes::new(1514);
        prop_oneof![
            Just(Aqm::Codel(Codel { target_ps, interval_ps, ecn })),
            Just(Aqm::FqCodel(FqCodel { target_ps, interval_ps, ecn, queues: 16, quantum_bytes })),
            Just(Aqm::Pie(Pie {
                target_ps,
                update_ps: Span::from_us(2),
                max_burst_ps: Span::from_us(4),
                alpha: 1e5,
                beta: 1e6,
                ecn
            })),
            Just(Aqm::Threshold(Marking {
                k_min_bytes: Bytes::new(2000),
                k_max_bytes: Bytes::new(8000),
                p_max: 0.5,
                when: MarkingTime::Arrival
            })),
            Just(Aqm::DualPi2(DualPi2 {
                target_ps,
                update_ps: Span::from_us(2),
                alpha: 1e4,
                beta: 1e5,
                coupling: 2.0,
                ramp_start_ps: Span::from_us(1),
                ramp_range_ps: Span::from_us(1),
                ramp_frames: 1,
                scheduler: if ecn {
                    DualScheduler::Wrr { classic: 0.1 }
                } else {
                    DualScheduler::TimeShiftedFifo { shift_ps: Span::from_us(6) }
                },
            })),
        ]
    })
}

/// Any scenario in which some queues are managed.
fn any_managed() -> impl Strategy<Value = Spec> {
    (any_scenario(), any_aqm(), any::<u64>()).prop_map(|(mut spec, aqm, chosen)| {
        let ports = Topology::expand(&spec.network).expect("a legal network").ports.len() as u32;
        let ports: Vec<u32> = (0..ports).filter(|port| chosen >> (port % 64) & 1 == 1).collect();
        let limit = if chosen % 3 == 0 { Limit::Frames(8) } else { Limit::Unlimited };
        spec.queues.push(QueueRule { ports, discipline: Discipline::Managed { limit, aqm } });
        spec
    })
}

proptest! {
    #[test]
    fn managed_queues_lose_no_frame_unseen(spec in any_managed(), seed: u64) {
        // The run itself counts every frame where it is.
        let totals = run(&spec, seed);
        let mut of_port = vec![0; totals.ports.len()];
        for drop in totals.drops.iter().filter(|drop| drop.cause != DropCause::LinkLoss) {
            of_port[drop.port as usize] += drop.frames;
        }
        prop_assert_eq!(of_port, totals.ports.iter().map(|port| port.counters.drops).collect::<Vec<_>>());
    }

    #[test]
    fn how_sources_are_fed_and_what_is_recorded_does_not_change_what_managed_queues_do(spec in any_managed(), seed: u64) {
        let (pulled, pushed) = (run(&spec, seed), run_fed(&spec, seed, Feeding::Pushed));
        prop_assert_eq!(&pulled.drops, &pushed.drops);
        prop_assert_eq!(&pulled.flows, &pushed.flows);
        let unseen = run(&Spec { record: Record::default(), ..spec }, seed);
        prop_assert_eq!(&pulled.drops, &unseen.drops);
        prop_assert_eq!(&pulled.flows, &unseen.flows);
    }
}

#[test]
fn early_drops_have_a_cause_of_their_own() {
    // 10 Gbit/s and 10 Gbit/s meet before a port of 10 Gbit/s.
    let mut spec = spec(4, vec![constant(0, 3, 1200), constant(1, 3, 1200)], Span::from_ms(2));
    let codel = Codel { target_ps: Span::from_us(20), interval_ps: Span::from_us(100), ecn: false };
    let discipline = Discipline::Managed { limit: Limit::Frames(200), aqm: Aqm::Codel(codel) };
    let ports: Vec<u32> = (0..8).filter(|port| port % 2 == 1).collect();
    spec.queues = vec![QueueRule { ports, discipline }];
    let totals = run(&spec, 1);
    let of_cause =
        |cause: DropCause| totals.drops.iter().filter(|drop| drop.cause == cause).map(|drop| drop.frames).sum::<u64>();
    assert!(of_cause(DropCause::QueueEarly) > 20);
    assert!(of_cause(DropCause::QueueFull) > 0, "senders that do not listen fill the queue all the same");
}
