//! Model of one direction of a slow link: rate, bounded queue, random loss and delay.
//!
//! The model takes the time from its caller. A packet waits in the queue until the link is free, occupies the link for
//! its length, and is then lost or arrives after the delay. A packet that finds the queue full is dropped.

use std::time::{Duration, Instant};

/// Bytes per second towards the client: 10 Mbit/s.
pub const RATE: f64 = 10e6 / 8.0;
/// Time to send a full queue. A packet that would wait longer is dropped.
pub const QUEUE: Duration = Duration::from_millis(50);

/// Properties of one direction.
#[derive(Clone, Copy)]
pub struct Conditions {
    /// Bytes per second; `None` for a link that is never busy.
    pub rate: Option<f64>,
    /// Time from the end of the transmission to the arrival.
    pub delay: Duration,
    /// Probability that a packet is lost.
    pub loss: f64,
}

/// State of one direction.
pub struct Link {
    conditions: Conditions,
    random: Random,
    /// End of the transmission of all packets in the queue.
    free_at: Option<Instant>,
}

/// Outcome of sending a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketOutcome {
    /// The packet arrives at this moment.
    Arrives(Instant),
    /// The packet is lost at random.
    Lost,
    /// The packet is dropped, because the queue is full.
    QueueFull,
}

impl Link {
    /// Creates an idle link. Links with the same seed lose the same packets of a sequence.
    pub fn new(conditions: Conditions, seed: u64) -> Link {
        Link {
            conditions,
            random: Random(seed),
            free_at: None,
        }
    }

    /// Sends a packet of `length` bytes at `now`, which must not be earlier than in the call before.
    pub fn send(&mut self, now: Instant, length: usize) -> PacketOutcome {
        let begin = self.free_at.map_or(now, |free| free.max(now));
        if begin - now > QUEUE {
            return PacketOutcome::QueueFull;
        }
        let seconds = self.conditions.rate.map_or(0.0, |rate| length as f64 / rate);
        let sent = begin + Duration::from_secs_f64(seconds);
        self.free_at = Some(sent);
        if self.random.next() < self.conditions.loss {
            PacketOutcome::Lost
        } else {
            PacketOutcome::Arrives(sent + self.conditions.delay)
        }
    }
}

/// SplitMix64, a simple random generator.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to less than 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(10);
    /// Length of a packet whose transmission takes 1 ms at [`RATE`].
    const LENGTH: usize = 1250;
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn link(rate: Option<f64>, loss: f64) -> Link {
        let conditions = Conditions {
            rate,
            delay: DELAY,
            loss,
        };
        Link::new(conditions, 1)
    }

    #[test]
    fn packets_arrive_after_queue_transmission_and_delay() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        let mut slow = link(Some(RATE), 0.0);
        // (sent at, arrives at), in milliseconds: the second packet waits for the first, the third finds the link free.
        for (sent, arrives) in [(0, 11), (0, 12), (5, 16), (5, 17), (7, 18)] {
            assert_eq!(
                slow.send(at(sent), LENGTH),
                PacketOutcome::Arrives(at(arrives)),
                "sent at {sent}"
            );
        }
        let mut fast = link(None, 0.0);
        for sent in [0, 0, 5] {
            assert_eq!(fast.send(at(sent), LENGTH), PacketOutcome::Arrives(at(sent) + DELAY));
        }
    }

    #[test]
    fn the_queue_is_bounded_and_drains_at_the_rate() {
        let begin = Instant::now();
        let mut link = link(Some(RATE), 0.0);
        // 51 packets: the last of them waits exactly as long as a full queue lasts.
        let fits = QUEUE.as_millis() as u32 + 1;
        for number in 1..=fits {
            assert_eq!(
                link.send(begin, LENGTH),
                PacketOutcome::Arrives(begin + number * MILLISECOND + DELAY)
            );
        }
        assert_eq!(link.send(begin, LENGTH), PacketOutcome::QueueFull);
        let later = begin + MILLISECOND;
        assert_eq!(
            link.send(later, LENGTH),
            PacketOutcome::Arrives(begin + (fits + 1) * MILLISECOND + DELAY)
        );
        assert_eq!(link.send(later, LENGTH), PacketOutcome::QueueFull);
    }

    #[test]
    fn packets_are_lost_at_the_rate_of_loss_and_in_the_same_way_each_time() {
        const PACKETS: usize = 100_000;
        let begin = Instant::now();
        let lost = |loss| -> Vec<bool> {
            let mut link = link(None, loss);
            (0..PACKETS)
                .map(|_| link.send(begin, LENGTH) == PacketOutcome::Lost)
                .collect()
        };
        for loss in [0.0, 0.01, 0.05] {
            let found = lost(loss);
            let share = found.iter().filter(|lost| **lost).count() as f64 / PACKETS as f64;
            assert!((share - loss).abs() <= loss / 10.0, "{share} instead of {loss}");
            assert_eq!(found, lost(loss));
        }
    }

    #[test]
    fn a_lost_packet_occupies_the_link() {
        let begin = Instant::now();
        let mut link = link(Some(RATE), 1.0);
        assert_eq!(link.send(begin, LENGTH), PacketOutcome::Lost);
        link.conditions.loss = 0.0;
        assert_eq!(
            link.send(begin, LENGTH),
            PacketOutcome::Arrives(begin + 2 * MILLISECOND + DELAY)
        );
    }
}
