//! Bounded list of the clients with the most offences.
//!
//! The list uses the Space-Saving algorithm. If the list is full, a new client takes the place of the client with the
//! lowest weight, and continues with that weight. A client that commits more than one in [`MAX_OFFENDERS`] of all
//! offences is therefore in the list. Weights halve from time to time, so that the list shows recent offences.

/// Maximum number of clients in the list.
pub const MAX_OFFENDERS: usize = 256;

/// Time in seconds after which weights and counters halve.
const HALF_LIFE_S: u64 = 600;

/// Offences of one client, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offender<const KINDS: usize> {
    /// Client: the bits of its IPv4-mapped address, or of the /64 network of its IPv6 address.
    pub client: u128,
    /// Numbers of its offences by kind. They are too low for a client that has left the list for a while.
    pub counts: [u64; KINDS],
    /// Number by which the list is ordered: the number of offences of the client, too high by at most the weight of
    /// the client whose place it has taken.
    weight: u64,
}

/// Clients with the most offences.
#[derive(Debug, Default)]
pub struct Offenders<const KINDS: usize> {
    all: Vec<Offender<KINDS>>,
    halved_at_s: u64,
}

impl<const KINDS: usize> Offender<KINDS> {
    /// Size of a record in bytes.
    pub const RECORD_SIZE: usize = size_of::<u128>() + size_of::<u64>() * (1 + KINDS);

    /// Writes the record of the client, which has [`Offender::RECORD_SIZE`] bytes.
    pub fn write(&self, record: &mut [u8]) {
        let numbers = [self.weight].into_iter().chain(self.counts);
        let bytes = self
            .client
            .to_le_bytes()
            .into_iter()
            .chain(numbers.flat_map(u64::to_le_bytes));
        record.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    }

    /// Reads a record; `None` if it is incomplete.
    pub fn read(record: &[u8]) -> Option<Offender<KINDS>> {
        let (client, mut rest) = record.split_first_chunk()?;
        let mut number = || {
            let (number, left) = rest.split_first_chunk()?;
            rest = left;
            Some(u64::from_le_bytes(*number))
        };
        let weight = number()?;
        let mut counts = [0; KINDS];
        for count in &mut counts {
            *count = number()?;
        }
        let client = u128::from_le_bytes(*client);
        Some(Offender { client, counts, weight })
    }
}

impl<const KINDS: usize> Offenders<KINDS> {
    /// Counts an offence. `kind`: its index. `now_s`: seconds of any clock.
    pub fn add(&mut self, client: u128, kind: usize, now_s: u64) {
        self.halve(now_s);
        let at = match self.all.iter().position(|offender| offender.client == client) {
            Some(at) => at,
            None if self.all.len() < MAX_OFFENDERS => {
                self.all.push(Offender {
                    client,
                    counts: [0; KINDS],
                    weight: 0,
                });
                self.all.len() - 1
            }
            None => {
                let least = self.all.iter().enumerate().min_by_key(|(_, offender)| offender.weight);
                let Some((at, _)) = least else { return };
                (self.all[at].client, self.all[at].counts) = (client, [0; KINDS]);
                at
            }
        };
        let offender = &mut self.all[at];
        offender.weight = offender.weight.saturating_add(1);
        if let Some(count) = offender.counts.get_mut(kind) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns at most `max` clients, the one with the most offences first.
    pub fn worst(&mut self, max: usize, now_s: u64) -> Vec<Offender<KINDS>> {
        self.halve(now_s);
        let mut all = self.all.clone();
        all.sort_by(|a, b| b.weight.cmp(&a.weight).then(a.client.cmp(&b.client)));
        all.truncate(max);
        all
    }

    /// Returns all clients, for a successor.
    pub fn all(&self) -> &[Offender<KINDS>] {
        &self.all
    }

    /// Adds the offences of a client from the list of the previous process. If the list is full, a new client takes the
    /// place of the client with the lowest weight, or is left out if its own weight is not higher.
    pub fn adopt(&mut self, adopted: Offender<KINDS>, now_s: u64) {
        self.halve(now_s);
        if let Some(offender) = self.all.iter_mut().find(|offender| offender.client == adopted.client) {
            offender.weight = offender.weight.saturating_add(adopted.weight);
            let counts = offender.counts.iter_mut().zip(adopted.counts);
            counts.for_each(|(count, adopted)| *count = count.saturating_add(adopted));
        } else if self.all.len() < MAX_OFFENDERS {
            self.all.push(adopted);
        } else if let Some(least) = self.all.iter_mut().min_by_key(|offender| offender.weight)
            && least.weight < adopted.weight
        {
            *least = adopted;
        }
    }

    /// Halves the weights and counters once for each interval that has passed, and removes clients without offences.
    fn halve(&mut self, now_s: u64) {
        let intervals = now_s.saturating_sub(self.halved_at_s) / HALF_LIFE_S;
        if intervals == 0 {
            return;
        }
        self.halved_at_s = now_s;
        let shift = u32::try_from(intervals).unwrap_or(63).min(63);
        for offender in &mut self.all {
            offender.weight >>= shift;
            offender.counts.iter_mut().for_each(|count| *count >>= shift);
        }
        self.all.retain(|offender| offender.weight > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_clients_stay_in_the_list() {
        let mut offenders = Offenders::<2>::default();
        for round in 0..1_000_u128 {
            offenders.add(1, 0, 0);
            offenders.add(2, usize::from(round % 2 == 0), 0);
            // A flood from clients with one offence each.
            for client in 0..10 {
                offenders.add(1_000 + 10 * round + client, 0, 0);
            }
        }
        let worst = offenders.worst(2, 0);
        assert_eq!(worst.iter().map(|one| one.client).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((worst[0].counts, worst[1].counts), ([1_000, 0], [500, 500]));
        assert_eq!(offenders.worst(1_000, 0).len(), MAX_OFFENDERS);
        assert_eq!(offenders.worst(1, HALF_LIFE_S)[0].counts, [500, 0]);
        assert!(offenders.worst(10, 1_000 * HALF_LIFE_S).is_empty());
    }

    #[test]
    fn a_list_is_adopted() {
        let mut old = Offenders::<2>::default();
        (0..7).for_each(|at| old.add(5, at % 2, 9));
        (1_000..2_000).for_each(|client| old.add(client, 0, 9));
        let copies = old.all().iter().map(|offender| {
            let mut record = [0; Offender::<2>::RECORD_SIZE];
            offender.write(&mut record);
            assert_eq!(Offender::<2>::read(&record[1..]), None);
            Offender::read(&record).unwrap()
        });
        let copies: Vec<Offender<2>> = copies.collect();
        assert_eq!(copies, old.all());
        let mut new = Offenders::<2>::default();
        copies.iter().for_each(|offender| new.adopt(*offender, 20));
        assert_eq!(new.worst(MAX_OFFENDERS, 20), old.worst(MAX_OFFENDERS, 20));
        // Offences in both processes add up. The full list keeps the clients with the most.
        copies.iter().for_each(|offender| new.adopt(*offender, 20));
        let many = Offender {
            client: 1,
            counts: [u64::MAX, 0],
            weight: u64::MAX,
        };
        new.adopt(many, 20);
        new.add(1, 0, 20);
        let worst = new.worst(MAX_OFFENDERS + 1, 20);
        let five = worst.iter().find(|offender| offender.client == 5).unwrap();
        assert_eq!((worst.len(), worst[0], five.counts), (MAX_OFFENDERS, many, [8, 6]));
    }
}
