//! Which queues of hosts may send: sets of small numbers, a bit for each.

/// For each host the queues that are ready, with the words that are not empty, and the hosts that have any.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Words of a host, and words of bits for them.
    row: usize,
    summary_row: usize,
    words: Vec<u64>,
    summary: Vec<u64>,
    hosts: Vec<u64>,
}

impl Ready {
    /// Nothing is ready at so many hosts with so many queues each.
    pub fn new(hosts: usize, queues: usize) -> Ready {
        let row = queues.div_ceil(64);
        let summary_row = row.div_ceil(64);
        let (words, summary) = (vec![0; hosts * row], vec![0; hosts * summary_row]);
        Ready { row, summary_row, words, summary, hosts: vec![0; hosts.div_ceil(64)] }
    }

    /// The hosts where a queue is ready, a bit for each.
    #[inline(always)]
    pub fn hosts(&self) -> &[u64] {
        &self.hosts
    }

    /// Whether a queue of a host is ready.
    pub(crate) fn is_ready(&self, host: usize, queue: usize) -> bool {
        self.words[host * self.row + queue / 64] >> (queue % 64) & 1 != 0
    }

    /// The ready queues of a host, by number.
    pub fn queues(&self, host: usize) -> impl DoubleEndedIterator<Item = usize> + Clone + '_ {
        (0..64 * self.row).filter(move |&queue| self.is_ready(host, queue))
    }

    /// A queue has something to send, and may.
    #[inline]
    pub fn set(&mut self, host: usize, queue: usize) {
        let word = queue / 64;
        self.words[host * self.row + word] |= 1 << (queue % 64);
        self.summary[host * self.summary_row + word / 64] |= 1 << (word % 64);
        self.hosts[host / 64] |= 1 << (host % 64);
    }

    /// It has nothing to send, or may not.
    #[inline]
    pub fn clear(&mut self, host: usize, queue: usize) {
        let word = queue / 64;
        let bits = &mut self.words[host * self.row + word];
        *bits &= !(1 << (queue % 64));
        if *bits != 0 {
            return;
        }
        let summary = &mut self.summary[host * self.summary_row..][..self.summary_row];
        summary[word / 64] &= !(1 << (word % 64));
        if summary.iter().all(|&word| word == 0) {
            self.hosts[host / 64] &= !(1 << (host % 64));
        }
    }

    /// The only ready queue of a host, where it is easily seen that there is just one.
    #[inline]
    pub fn only(&self, host: usize) -> Option<usize> {
        let [summary] = self.summary[host * self.summary_row..][..self.summary_row] else { return None };
        let place = summary.trailing_zeros() as usize;
        let word = *self.words[host * self.row..][..self.row].get(place)?;
        (summary.is_power_of_two() && word.is_power_of_two()).then(|| 64 * place + word.trailing_zeros() as usize)
    }

    /// The first ready queue of a host from `turn` on, round about.
    #[inline]
    pub fn next(&self, host: usize, turn: usize) -> Option<usize> {
        let words = &self.words[host * self.row..][..self.row];
        let first = turn / 64;
        if let Some(&word) = words.get(first) {
            let rest = word & (u64::MAX << (turn % 64));
            if rest != 0 {
                return Some(first * 64 + rest.trailing_zeros() as usize);
            }
        }
        let summary = &self.summary[host * self.summary_row..][..self.summary_row];
        let word = first_from(summary, first + 1).or_else(|| first_from(summary, 0))?;
        Some(word * 64 + words[word].trailing_zeros() as usize)
    }
}

/// The first set bit from `from` on.
#[inline]
fn first_from(words: &[u64], from: usize) -> Option<usize> {
    let mut mask = u64::MAX << (from % 64);
    for (place, &word) in words.iter().enumerate().skip(from / 64) {
        if word & mask != 0 {
            return Some(64 * place + (word & mask).trailing_zeros() as usize);
        }
        mask = u64::MAX;
    }
    None
}
