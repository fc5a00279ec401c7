//! Wakes a task at a moment that may change often, with the precision that loss detection of QUIC needs.
//!
//! The timer wheel is too coarse for this: its ticks are up to 250 ms apart, and a lost packet is to be sent again
//! after a few milliseconds.

#[cfg(target_os = "linux")]
#[path = "alarm/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "alarm/portable.rs"]
mod system;

pub use system::Alarm;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::{Duration, Instant};

    use super::Alarm;
    use crate::runtime::Runtime;

    /// Maximum number of events that the runtime reads in one poll. Any value serves in these tests.
    const MAX_EVENTS: usize = 64;

    #[test]
    fn goes_off_at_its_moment_and_not_before() {
        let runtime = Runtime::new(MAX_EVENTS).expect("a runtime");
        runtime.block_on(async {
            let mut alarm = Alarm::new().expect("an alarm");
            let began = Instant::now();
            let delay = Duration::from_millis(5);
            // Only the moment that was set last counts.
            alarm.set(Some(began + Duration::from_secs(60)), began);
            alarm.set(Some(began + delay), began);
            poll_fn(|context| match alarm.poll(context) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            assert!(began.elapsed() >= delay, "after {:?}", began.elapsed());
            // The alarm goes off only once.
            let went_off_again = poll_fn(|context| Poll::Ready(alarm.poll(context))).await;
            assert!(!went_off_again);
        });
    }

    #[test]
    fn a_past_moment_goes_off_and_a_cleared_one_does_not() {
        let runtime = Runtime::new(MAX_EVENTS).expect("a runtime");
        runtime.block_on(async {
            let mut alarm = Alarm::new().expect("an alarm");
            let now = Instant::now();
            alarm.set(Some(now), now);
            poll_fn(|context| match alarm.poll(context) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            alarm.set(Some(now), now);
            alarm.set(None, now);
            let went_off = poll_fn(|context| Poll::Ready(alarm.poll(context))).await;
            assert!(!went_off, "an alarm that was cleared went off");
        });
    }
}
