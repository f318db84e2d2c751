use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use weir_core::units::Span;

use super::*;

/// Far and near, crowded and sparse, and often at the same time.
fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..3_000,
        2 => Just(1_700_000u64),
        2 => 0u64..2_000_000,
        1 => 0u64..1 << 40,
        1 => Just(0u64),
    ]
}

impl Agenda {
    fn next(&mut self) -> Option<(Time, Entity)> {
        if self.is_idle() {
            self.turn();
        }
        self.pop()
    }
}

proptest! {
    /// Events leave in the order of a sorted set, whether the agenda is an array or a wheel, however often and
    /// to whatever widths the wheel is fitted.
    #[test]
    fn events_leave_in_the_order_of_time_and_entity(
        steps in prop::collection::vec((ahead(), 0u8..100), 1..3_000),
        entities in 1usize..400, few in 0usize..50, fit_at in 1usize..300, busy in 20u8..100,
    ) {
        let mut agenda = Agenda::new(entities);
        (agenda.few, agenda.fit_at) = (few, fit_at);
        // An entity may have several events, even at one time.
        let mut expected: BTreeMap<(Time, Entity), u32> = BTreeMap::new();
        let mut idle: Vec<Entity> = (0..entities as Entity).rev().chain(0..entities as Entity / 2).collect();
        let mut now = Time::ZERO;
        for (ahead, dice) in steps {
            match idle.pop().filter(|_| dice < busy) {
                Some(entity) => {
                    let at = now + Span::from_ps(ahead);
                    agenda.push(at, entity);
                    *expected.entry((at, entity)).or_default() += 1;
                }
                None => {
                    let next = expected.first_entry().map(|mut first| {
                        *first.get_mut() -= 1;
                        if *first.get() == 0 { first.remove_entry().0 } else { *first.key() }
                    });
                    prop_assert_eq!(agenda.next(), next);
                    if let Some((at, entity)) = next {
                        now = at;
                        idle.push(entity);
                    }
                }
            }
        }
        for (event, count) in expected {
            for _ in 0..count {
                prop_assert_eq!(agenda.next(), Some(event));
            }
        }
        prop_assert_eq!(agenda.next(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The same, where a crowd acts at one instant, at which events are entered for others, before and behind those
    /// that wait, and for later instants that they have in common.
    #[test]
    fn crowds_leave_in_the_order_of_time_and_entity(
        crowd in 1_u32..3_000,
        gaps in prop::collection::vec(prop_oneof![Just(0_u64), Just(1), Just(100), Just(51_200), 0_u64..1 << 34], 1..6),
        dice in prop::collection::vec(any::<u32>(), 1..200),
        few in 0_usize..50, fit_at in 1_usize..3000,
    ) {
        let mut agenda = Agenda::new(crowd as usize);
        (agenda.few, agenda.fit_at) = (few, fit_at);
        let mut expected = BTreeSet::new();
        for entity in 0..crowd {
            agenda.push(Time::from_ps(7), entity);
            expected.insert((Time::from_ps(7), entity));
        }
        let mut dice = dice.into_iter().cycle();
        let mut roll = |faces: u32| dice.next().map_or(0, |die| die % faces);
        for _ in 0..6_000 {
            let next = expected.pop_first();
            prop_assert_eq!(agenda.next(), next);
            let Some((now, _)) = next else { break };
            for _ in 0..roll(3) {
                let at = now + Span::from_ps(gaps[roll(gaps.len() as u32) as usize]);
                let entity = roll(4 * crowd);
                if expected.insert((at, entity)) {
                    agenda.push(at, entity);
                }
            }
        }
        for event in expected {
            prop_assert_eq!(agenda.next(), Some(event));
        }
        prop_assert_eq!(agenda.next(), None);
    }
}

#[test]
fn an_agenda_changes_between_array_and_wheel() {
    let mut agenda = Agenda::new(100);
    for entity in 0..100 {
        agenda.push(Time::from_ps(u64::from(entity) * 1000), entity);
    }
    let (mut last, mut widths) = (Time::ZERO, BTreeSet::new());
    for _ in 0..4 * FIRST_FIT {
        let (at, entity) = agenda.next().expect("an event is pending");
        assert!(at >= last);
        last = at;
        widths.insert(agenda.shift);
        if entity < 5 {
            agenda.push(at + Span::from_ps(777), entity);
        }
    }
    assert_eq!(agenda.shift, MAX_SHIFT, "five events are few");
}

#[test]
fn a_crowd_at_one_instant_leaves_in_the_order_of_entities() {
    let mut agenda = Agenda::new(3000);
    let crowd =
        |at: u64, agenda: &mut Agenda| (0..3000).rev().for_each(|entity| agenda.push(Time::from_ps(at), entity));
    for at in [0, 7, 1 << 40] {
        crowd(at, &mut agenda);
        let left: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
        assert!(left.into_iter().eq((0..3000).map(|entity| (Time::from_ps(at), entity))));
    }
}
