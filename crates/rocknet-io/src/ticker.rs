//! Periodic tick of an event loop. It can be switched on and off, and costs nothing between ticks.
//!
//! On Linux the ticker is a `timerfd`, so that iterations without a tick neither read a clock nor check timers. Doing
//! both took a sixth of all instructions of a small request.

#[cfg(target_os = "linux")]
#[path = "ticker/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "ticker/portable.rs"]
mod system;

pub use system::Ticker;

/// True if the ticker needs the timers of the Tokio runtime.
pub(crate) const NEEDS_RUNTIME_TIME: bool = system::NEEDS_RUNTIME_TIME;

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::{Duration, Instant};

    use super::Ticker;
    use crate::runtime::Runtime;

    /// Maximum number of events that the runtime reads in one poll. Any value serves in this test.
    const MAX_EVENTS: usize = 64;

    #[test]
    fn ticks_while_it_is_on() {
        let runtime = Runtime::new(MAX_EVENTS).unwrap();
        runtime.block_on(async {
            let period = Duration::from_millis(5);
            let mut ticker = Ticker::new(period).unwrap();
            for _ in 0..2 {
                let began = Instant::now();
                ticker.start();
                assert!(ticker.is_on());
                let mut ticks = 0;
                poll_fn(|context| {
                    loop {
                        match ticker.poll_ticks(context) {
                            _ if ticks >= 3 => return Poll::Ready(()),
                            0 => return Poll::Pending,
                            more => ticks += more,
                        }
                    }
                })
                .await;
                // Three ticks take three periods; the bound leaves one period for the rounding of timers.
                assert!(
                    began.elapsed() >= period * 2,
                    "{ticks} ticks after {:?}",
                    began.elapsed()
                );
                ticker.stop();
                assert!(!ticker.is_on());
                let none = poll_fn(|context| Poll::Ready(ticker.poll_ticks(context))).await;
                assert_eq!(none, 0);
            }
        });
    }
}
