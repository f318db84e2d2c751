//! Links of a slotted network by number, those of hosts first.

/// No port, no switch, never.
pub(super) const NONE: u32 = u32::MAX;

/// Which lanes and links there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes {
    pub(super) hosts: usize,
    /// The first lane between switches.
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Lanes {
    /// Those of a network whose hosts are the first nodes, each with one link, the first ones.
    pub(super) fn new(hosts: usize, ports: usize) -> Lanes {
        let first = hosts.next_multiple_of(64);
        Lanes { hosts, first, count: first + ports - 2 * hosts }
    }

    pub(super) fn links(self) -> usize {
        self.count + self.hosts
    }

    /// Whether `link` is more than what fills a word.
    pub(super) fn has(self, link: usize) -> bool {
        link < self.hosts || link >= self.first
    }

    /// The link from a host.
    #[inline]
    pub(super) fn uplink(self, host: u32) -> u32 {
        self.count as u32 + host
    }

    /// The link whose transmitter is `port`.
    pub(super) fn link(self, port: u32) -> u32 {
        match (port as usize).checked_sub(2 * self.hosts) {
            Some(place) => (self.first + place) as u32,
            None if port.is_multiple_of(2) => self.uplink(port / 2),
            None => port / 2,
        }
    }

    /// The transmitter of a link.
    pub(super) fn port(self, link: u32) -> u32 {
        let place = link as usize;
        if place >= self.count {
            2 * (link - self.count as u32)
        } else if place >= self.first {
            (place - self.first + 2 * self.hosts) as u32
        } else {
            2 * link + 1
        }
    }
}
