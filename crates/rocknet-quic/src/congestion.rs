//! Congestion control: CUBIC (RFC 9438), with HyStart++ (RFC 9406) for slow start.
//!
//! CUBIC of `quinn-proto` leaves slow start only after a loss, when the window is twice as large as the path carries.
//! HyStart++ leaves it once the round-trip time grows.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

/// Initial window in bytes: ten datagrams of the size that every path supports (RFC 9002 §7.2).
const INITIAL_WINDOW: u64 = 10 * 1200;
/// Minimum window in datagrams (RFC 9002 §7.2).
const MINIMUM_WINDOW: u64 = 2;
/// Factor by which the window is multiplied after a loss (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// Constant of the cubic function in datagrams per cubic second (RFC 9438 §5.1).
const C: f64 = 0.4;
/// Growth of the Reno-friendly estimate in datagrams per window, until it reaches the window before the loss (RFC 9438
/// §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Bounds of the increase in round-trip time that ends slow start (RFC 9406 §4.3).
const MIN_GROWTH: Duration = Duration::from_millis(4);
const MAX_GROWTH: Duration = Duration::from_millis(16);
/// Number of round-trip times that a round must have measured before their minimum counts (RFC 9406 §4.3).
const MIN_SAMPLES: u32 = 8;
/// Divisor of the growth of the window in conservative slow start (RFC 9406 §4.3).
const CONSERVATIVE_DIVISOR: u64 = 4;
/// Maximum number of rounds of conservative slow start (RFC 9406 §4.3).
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Creates the controllers of new connections and paths.
pub(crate) struct CubicFactory;

impl ControllerFactory for CubicFactory {
    fn build(self: Arc<Self>, _: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Cubic::new(mtu.into()))
    }
}

/// Permits CONNECTION_CLOSE of a closed connection, which is not subject to congestion control (RFC 9002 §3).
///
/// While the congestion window is full and stream data waits for it, `quinn-proto` holds CONNECTION_CLOSE back too. A
/// closed connection reads no acknowledgements, so the window stays full, and the frame would never be sent.
pub(crate) fn permit_close(controller: &dyn Controller) {
    if let Ok(cubic) = controller.clone_box().into_any().downcast::<Cubic>() {
        cubic.is_closed.store(true, Ordering::Relaxed);
    }
}

/// State of one path. Windows are in bytes.
#[derive(Clone)]
struct Cubic {
    /// Set by [`permit_close`]. Shared by the clones of one controller, because only a clone can be converted to this
    /// type.
    is_closed: Arc<AtomicBool>,
    /// Maximum payload of a datagram in bytes.
    mtu: u64,
    /// Congestion window.
    window: f64,
    /// Slow start ends at this window.
    threshold: f64,
    /// Time at which the last loss was detected; `None` before the first loss and after persistent congestion. Packets
    /// that were sent by then neither grow nor reduce the window.
    recovery_start: Option<Instant>,
    /// Window at which the cubic function is flat.
    origin: f64,
    /// Window before the last reduction.
    prior: f64,
    /// `None` before congestion avoidance begins.
    epoch: Option<Epoch>,
    slow_start: SlowStart,
}

/// Congestion avoidance since the last loss.
#[derive(Clone)]
struct Epoch {
    /// Start, moved forward by the time in which the window could not grow, because the application sent too little
    /// (RFC 9438 §4.2).
    start: Instant,
    /// Time of the last growth.
    last_growth: Instant,
    /// True if the application has sent less than the window permits since `last_growth`.
    was_limited: bool,
    /// Seconds until the cubic function reaches its origin.
    k: f64,
    /// Window that Reno would have.
    estimate: f64,
}

/// Rounds of HyStart++. A round ends when a packet that was sent in it is acknowledged.
#[derive(Clone, Default)]
struct SlowStart {
    /// Start of the current round.
    round_start: Option<Instant>,
    /// Minimum round-trip time of the previous round.
    last_min_rtt: Option<Duration>,
    /// Minimum round-trip time of the current round.
    min_rtt: Option<Duration>,
    /// Number of samples of the round-trip time in the current round.
    samples: u32,
    /// Set during conservative slow start.
    conservative: Option<Conservative>,
}

/// Conservative slow start.
#[derive(Clone)]
struct Conservative {
    /// Minimum round-trip time at the start of this phase. A lower one shows that the growth was not caused by a queue.
    baseline: Duration,
    /// Number of rounds that have begun in this phase.
    rounds: u32,
}

impl Cubic {
    fn new(mtu: u64) -> Cubic {
        Cubic {
            is_closed: Arc::default(),
            mtu,
            window: INITIAL_WINDOW as f64,
            threshold: f64::INFINITY,
            recovery_start: None,
            origin: 0.0,
            prior: 0.0,
            epoch: None,
            slow_start: SlowStart::default(),
        }
    }

    /// Returns the minimum window in bytes.
    fn minimum_window(&self) -> f64 {
        (MINIMUM_WINDOW * self.mtu) as f64
    }

    /// Notes that the application has sent less than the window permits.
    fn application_limited(&mut self) {
        if let Some(epoch) = &mut self.epoch {
            epoch.was_limited = true;
        }
    }

    /// Grows the window for `bytes` acknowledged bytes, which were sent at the time `sent`.
    fn acked(&mut self, now: Instant, sent: Instant, bytes: u64, rtt: Duration) {
        if self.window < self.threshold {
            let (growth, is_over) = self.slow_start.acked(now, sent, bytes);
            self.window += growth as f64;
            if is_over {
                self.threshold = self.window;
            }
        } else {
            self.avoid_congestion(now, bytes as f64, rtt);
        }
    }

    /// Grows the window in congestion avoidance (RFC 9438 §4.2 to §4.5).
    fn avoid_congestion(&mut self, now: Instant, bytes: f64, rtt: Duration) {
        let mtu = self.mtu as f64;
        let epoch = self.epoch.get_or_insert_with(|| {
            // Slow start may have grown the window beyond the last origin (RFC 9438 §4.8).
            if self.origin < self.window {
                self.origin = self.window;
            }
            Epoch {
                start: now,
                last_growth: now,
                was_limited: false,
                k: ((self.origin - self.window) / mtu / C).cbrt(),
                estimate: self.window,
            }
        });
        if std::mem::take(&mut epoch.was_limited) {
            epoch.start += now.saturating_duration_since(epoch.last_growth);
        }
        epoch.last_growth = now;
        let cubic = |time: Duration| C * (time.as_secs_f64() - epoch.k).powi(3) * mtu + self.origin;
        let time = now.saturating_duration_since(epoch.start);
        let alpha = if epoch.estimate < self.prior { ALPHA } else { 1.0 };
        let (current, target) = (cubic(time), cubic(time + rtt));
        epoch.estimate += alpha * mtu * bytes / self.window;
        if current < epoch.estimate {
            // Reno-friendly region (§4.3).
            self.window = self.window.max(epoch.estimate);
        } else {
            // Concave or convex region (§4.4, §4.5).
            let target = target.clamp(self.window, 1.5 * self.window);
            self.window += (target - self.window) * bytes / self.window;
        }
    }

    /// Reduces the window after a loss. `is_persistent` is true for persistent congestion (RFC 9002 §7.6).
    fn lost(&mut self, now: Instant, is_persistent: bool) {
        self.recovery_start = Some(now);
        // Fast convergence (RFC 9438 §4.7).
        self.origin = if self.window < self.origin {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.prior = self.window;
        self.threshold = (self.window * BETA).max(self.minimum_window());
        self.window = self.threshold;
        self.epoch = None;
        if is_persistent {
            // The window falls to its minimum (RFC 9002 §7.6.2), and slow start follows. The window that slow start
            // reaches is the next origin (RFC 9438 §4.8).
            self.recovery_start = None;
            self.origin = 0.0;
            self.window = self.minimum_window();
            self.slow_start = SlowStart::default();
        }
    }
}

impl SlowStart {
    /// Returns the growth of the window for acknowledged bytes, and true if slow start is over.
    fn acked(&mut self, now: Instant, sent: Instant, bytes: u64) -> (u64, bool) {
        let mut is_over = false;
        if self.round_start.is_none_or(|start| sent >= start) {
            self.round_start = Some(now);
            self.last_min_rtt = self.min_rtt.take().or(self.last_min_rtt);
            self.samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                is_over = conservative.rounds >= CONSERVATIVE_ROUNDS;
            }
        }
        let sample = now.saturating_duration_since(sent);
        let min_rtt = self.min_rtt.map_or(sample, |min_rtt| min_rtt.min(sample));
        self.min_rtt = Some(min_rtt);
        self.samples += 1;
        if self.samples >= MIN_SAMPLES {
            match &self.conservative {
                Some(conservative) if min_rtt < conservative.baseline => self.conservative = None,
                Some(_) => {}
                None => {
                    let is_growing = self.last_min_rtt.is_some_and(|last| {
                        let growth = (last / 8).clamp(MIN_GROWTH, MAX_GROWTH);
                        min_rtt >= last + growth
                    });
                    if is_growing {
                        self.conservative = Some(Conservative {
                            baseline: min_rtt,
                            rounds: 0,
                        });
                    }
                }
            }
        }
        let divisor = if self.conservative.is_some() {
            CONSERVATIVE_DIVISOR
        } else {
            1
        };
        (bytes / divisor, is_over)
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if app_limited {
            self.application_limited();
        } else if self.recovery_start.is_none_or(|start| sent > start) {
            self.acked(now, sent, bytes, rtt.get());
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, _: u64) {
        if self.recovery_start.is_none_or(|start| sent > start) {
            self.lost(now, is_persistent_congestion);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.window = self.window.max(self.minimum_window());
    }

    /// Returns one byte more than the window, because `quinn-proto` sends a datagram only if less than the returned
    /// number is then in flight. RFC 9002 §7 permits the whole window. Without the byte, a window of two datagrams
    /// would permit one.
    fn window(&self) -> u64 {
        if self.is_closed.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        self.window as u64 + 1
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        INITIAL_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1200;
    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_closed_connection_is_not_held_back() {
        let cubic = Cubic::new(MTU);
        assert_eq!(cubic.window(), INITIAL_WINDOW + 1);
        permit_close(&cubic);
        assert_eq!(cubic.window(), u64::MAX);
    }

    /// Acknowledges one window that was sent at `sent`, as datagrams of [`MTU`] bytes.
    fn acknowledge(cubic: &mut Cubic, sent: Instant, rtt: Duration) {
        for _ in 0..(cubic.window as u64 / MTU) {
            cubic.acked(sent + rtt, sent, MTU, rtt);
        }
    }

    #[test]
    fn slow_start_doubles_the_window_until_the_round_trip_time_grows() {
        let (mut cubic, mut now) = (Cubic::new(MTU), Instant::now());
        for round in 1..4 {
            acknowledge(&mut cubic, now, RTT);
            now += RTT;
            assert_eq!(cubic.window as u64, INITIAL_WINDOW << round);
        }
        // The queue makes each round longer by a sixth.
        let before = cubic.window as u64;
        let mut rtt = RTT;
        for _ in 0..=CONSERVATIVE_ROUNDS {
            rtt += RTT / 6;
            acknowledge(&mut cubic, now, rtt);
            now += rtt;
        }
        assert!(cubic.threshold.is_finite(), "slow start is over");
        // Five rounds of about a quarter each instead of five doublings; the sixth round ends slow start.
        assert!(
            (3 * before..6 * before).contains(&(cubic.window as u64)),
            "{}",
            cubic.window
        );
    }

    #[test]
    fn a_shorter_round_trip_time_resumes_slow_start() {
        let (mut cubic, mut now) = (Cubic::new(MTU), Instant::now());
        for rtt in [RTT, RTT, RTT + MAX_GROWTH] {
            acknowledge(&mut cubic, now, rtt);
            now += rtt;
        }
        assert!(cubic.slow_start.conservative.is_some());
        acknowledge(&mut cubic, now, RTT);
        assert!(cubic.slow_start.conservative.is_none());
        assert_eq!(cubic.threshold, f64::INFINITY);
    }

    #[test]
    fn a_loss_reduces_the_window_once_and_it_grows_back_to_its_origin() {
        let (mut cubic, start) = (Cubic::new(MTU), Instant::now());
        cubic.window = (100 * MTU) as f64;
        cubic.on_congestion_event(start, start, false, MTU);
        cubic.on_congestion_event(start, start, false, MTU);
        assert_eq!(cubic.window as u64, 70 * MTU);
        assert_eq!(cubic.window(), 70 * MTU + 1);
        // The window returns to its origin after K = 4.2 seconds. K is the cube root of its reduction in datagrams, 30,
        // divided by C (RFC 9438 §4.2).
        let mut now = start;
        while now - start < Duration::from_millis(4300) {
            now += RTT;
            acknowledge(&mut cubic, now - RTT, RTT);
        }
        assert!((98..=102).contains(&(cubic.window as u64 / MTU)), "{}", cubic.window);
    }

    #[test]
    fn time_in_which_the_application_sends_little_does_not_grow_the_window() {
        // Returns the window of a connection after a loss and a pause in which the application sends little.
        let window_after = |pause: Duration| {
            let (mut cubic, mut now) = (Cubic::new(MTU), Instant::now());
            cubic.window = (100 * MTU) as f64;
            cubic.on_congestion_event(now, now, false, MTU);
            now += RTT;
            acknowledge(&mut cubic, now, RTT);
            now += pause;
            cubic.application_limited();
            now += RTT;
            acknowledge(&mut cubic, now - RTT, RTT);
            cubic.window
        };
        let (short, long) = (window_after(RTT), window_after(Duration::from_secs(20)));
        assert!(
            (long - short).abs() < MTU as f64,
            "{long} after a long pause, {short} after a short one"
        );
    }

    #[test]
    fn a_small_window_grows_as_reno_even_after_fast_convergence() {
        let (mut cubic, start) = (Cubic::new(MTU), Instant::now());
        cubic.window = (10 * MTU) as f64;
        cubic.origin = (20 * MTU) as f64;
        cubic.on_congestion_event(start, start, false, MTU);
        assert_eq!(cubic.window as u64, 7 * MTU);
        assert!(cubic.origin < (10 * MTU) as f64);
        for round in 1..=4 {
            acknowledge(&mut cubic, start + round * RTT, RTT);
        }
        let grown = cubic.window - (7 * MTU) as f64;
        assert!((1.8..2.3).contains(&(grown / MTU as f64)), "{grown}");
    }

    #[test]
    fn persistent_congestion_returns_to_slow_start() {
        let (mut cubic, start) = (Cubic::new(MTU), Instant::now());
        cubic.window = (50 * MTU) as f64;
        cubic.on_congestion_event(start, start, true, MTU);
        assert_eq!((cubic.window as u64, cubic.threshold as u64), (2 * MTU, 35 * MTU));
        acknowledge(&mut cubic, start, RTT);
        assert_eq!(cubic.window as u64, 4 * MTU);
        // Congestion avoidance begins at the window that slow start has reached, not at the window before the loss.
        cubic.window = cubic.threshold;
        acknowledge(&mut cubic, start + RTT, RTT);
        assert!((35..37).contains(&(cubic.origin as u64 / MTU)), "{}", cubic.origin);
    }
}
