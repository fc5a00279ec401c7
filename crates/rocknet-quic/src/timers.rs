//! Timers of the connections of one endpoint: an ordered set of moments, and one alarm for the earliest.
//!
//! The timeout of a connection changes with nearly every packet, usually to a later moment. The set changes only if the
//! new moment is earlier. A connection whose timeout has become later is woken too early, and then enters the new
//! moment.

use std::collections::BTreeSet;
use std::io;
use std::task::Context;
use std::time::Instant;

use rocknet_io::alarm::Alarm;

/// Moments at which connections have to be woken, at most one for each.
pub(crate) struct Timers {
    /// Each moment with the slot of its connection, which is the number of the connection handle.
    moments: BTreeSet<(Instant, usize)>,
    alarm: Alarm,
    /// Moment that the alarm is set to.
    armed: Option<Instant>,
}

impl Timers {
    /// Creates an empty set. Fails if the system has no descriptor for the alarm.
    pub fn new() -> io::Result<Timers> {
        Ok(Timers {
            moments: BTreeSet::new(),
            alarm: Alarm::new()?,
            armed: None,
        })
    }

    /// Replaces the moment of the connection in `slot`. `old` is its moment in the set, if any.
    pub fn replace(&mut self, slot: usize, old: Option<Instant>, new: Instant, now: Instant) {
        self.remove(slot, old);
        self.moments.insert((new, slot));
        if self.armed.is_none_or(|armed| new < armed) {
            self.arm(Some(new), now);
        }
    }

    /// Removes the moment of the connection in `slot`. `old` is that moment, if the set has any.
    pub fn remove(&mut self, slot: usize, old: Option<Instant>) {
        if let Some(old) = old {
            self.moments.remove(&(old, slot));
        }
    }

    /// Removes each moment that has passed, and calls `wake` with its slot.
    pub fn poll(&mut self, context: &mut Context<'_>, mut wake: impl FnMut(usize)) {
        // Each alarm that is set here has to be polled, too, so that it wakes the task.
        while self.alarm.poll(context) {
            let now = Instant::now();
            while let Some(&(moment, slot)) = self.moments.first()
                && moment <= now
            {
                self.moments.pop_first();
                wake(slot);
            }
            let next = self.moments.first().map(|&(moment, _)| moment);
            self.arm(next, now);
        }
    }

    /// Sets the alarm, unless there is no further moment. In this case the last alarm has gone off, so there is nothing
    /// to clear.
    fn arm(&mut self, moment: Option<Instant>, now: Instant) {
        self.armed = moment;
        if moment.is_some() {
            self.alarm.set(moment, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use rocknet_io::runtime::Runtime;

    use super::*;

    #[test]
    fn each_connection_is_woken_once_at_its_last_moment() {
        let runtime = Runtime::new(16).expect("a runtime");
        runtime.block_on(async {
            let mut timers = Timers::new().expect("timers");
            let now = Instant::now();
            let after = |millis| now + Duration::from_millis(millis);
            timers.replace(1, None, after(10_000), now);
            timers.replace(2, None, after(4), now);
            timers.replace(3, None, after(2), now);
            timers.replace(1, Some(after(10_000)), after(6), now);
            timers.remove(3, Some(after(2)));
            let mut woken = Vec::new();
            poll_fn(|context| {
                timers.poll(context, |slot| woken.push(slot));
                if woken.len() < 2 {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
            .await;
            assert_eq!(woken, [2, 1]);
            assert!(now.elapsed() >= Duration::from_millis(6));
            assert!(timers.moments.is_empty());
        });
    }
}
