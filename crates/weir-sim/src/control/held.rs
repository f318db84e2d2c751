//! What is known of a port whose classes flow control holds: how long, what its watchdog has seen, and what it asks for itself in a storm.

use weir_core::ethernet::pfc::{Holds, Says};
use weir_core::ethernet::watchdog::{Found, Seen, Watchdog};
use weir_core::queue::ClassSet;
use weir_core::spec;
use weir_core::units::{Span, Time};

/// A port that flow control holds, or that asks others to stop without end.
#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) holds: Holds,
    watch: Option<Box<Watch>>,
    pub(crate) storm: Option<Storm>,
}

/// Frames that set out again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    pub(crate) says: Says,
    pub(crate) every: Span,
    pub(crate) next: Time,
}

/// The watchdogs of a port.
#[derive(Debug)]
struct Watch {
    dogs: [Watchdog; 8],
    seen: [Seen; 8],
    /// Classes that are sent whatever is asked.
    ignored: ClassSet,
    /// Whether a look is entered.
    looks: bool,
}

impl Held {
    /// A frame asks for something at a port with watchdogs. Returns what of it counts, and whether a look is to be entered.
    pub(crate) fn note(&mut self, spec: spec::buffers::Watchdog, says: Says) -> (Says, bool) {
        let new = || Watch {
            dogs: std::array::from_fn(|_| Watchdog::new(spec)),
            seen: [Seen::default(); 8],
            ignored: ClassSet::NONE,
            looks: false,
        };
        let watch = self.watch.get_or_insert_with(|| Box::new(new()));
        for class in says.stop.list() {
            watch.seen[usize::from(class)].stops += 1;
        }
        for class in says.go.list() {
            watch.seen[usize::from(class)].releases += u64::from(self.holds.held().contains(class));
        }
        let begins = !std::mem::replace(&mut watch.looks, true);
        (Says { stop: says.stop.without(watch.ignored), ..says }, begins)
    }

    /// The watchdogs look. Returns what they find of which class, and whether they are to look again.
    pub(crate) fn look(&mut self) -> (Vec<(u8, Found)>, bool) {
        let Some(watch) = &mut self.watch else { return (Vec::new(), false) };
        let (mut found, held) = (Vec::new(), self.holds.held());
        for (class, dog) in (0..).zip(&mut watch.dogs) {
            let seen = std::mem::take(&mut watch.seen[usize::from(class)]);
            let seen = Seen { is_held: held.contains(class), ..seen };
            found.extend(dog.look(seen).map(|found| (class, found)));
        }
        watch.looks = !held.is_empty() || watch.dogs.iter().any(Watchdog::is_in_storm);
        (found, watch.looks)
    }

    /// Whether what is asked of `class` counts from now on.
    pub(crate) fn set_ignored(&mut self, class: u8, ignored: bool) {
        if let Some(watch) = &mut self.watch {
            let class = ClassSet::of(class);
            watch.ignored = if ignored { watch.ignored.with(class) } else { watch.ignored.without(class) };
        }
    }
}
