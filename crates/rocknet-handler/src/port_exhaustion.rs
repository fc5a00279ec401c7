//! Pauses connecting to destinations for which the system has no local port left.
//!
//! A connection needs a local port that no other connection to the same address uses. When all are in use, `connect`
//! searches the whole range before it fails with `EADDRNOTAVAIL`. This search takes about 2 ms. A worker that calls
//! `connect` for each request would do nothing but search.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::uptime_ms;

/// Pause of a destination, in milliseconds. One search of 2 ms per pause is negligible for a worker, and freed ports
/// are used again before a user gives up.
const PAUSE_MS: u64 = 500;

/// Maximum number of paused destinations. They come from the configuration and from DNS, never from a client. Further
/// destinations are not paused.
const MAX_DESTINATIONS: usize = 1024;

/// Advice for the operator, in the log and on error pages of `dev` mode.
pub const HINT: &str = "All local ports for connections to this back end are in use. Widen \
                        net.ipv4.ip_local_port_range, give the back end more addresses, or allow fewer requests at \
                        once (`connections` of a proxy).";

/// Paused destinations of the process. All workers share them, because they share the local ports.
static PAUSED: Destinations = Destinations::new();

/// Awaits `connect`, which connects to `address`, unless the destination is paused.
///
/// # Errors
///
/// Returns the error of `connect`, or `AddrNotAvailable` while the destination is paused. `AddrNotAvailable` from
/// `connect` pauses the destination for 500 ms.
pub async fn connect<T>(address: SocketAddr, connect: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    PAUSED.connect(address, connect, uptime_ms).await
}

/// Returns true if `connect` failed because no local port or address was available.
pub fn is_exhausted(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
}

struct Destinations {
    /// End of each pause in milliseconds of uptime.
    until_ms: Mutex<BTreeMap<SocketAddr, u64>>,
    /// Size of the map. It is mostly 0, and then the lock is not needed.
    count: AtomicUsize,
}

impl Destinations {
    const fn new() -> Destinations {
        Destinations {
            until_ms: Mutex::new(BTreeMap::new()),
            count: AtomicUsize::new(0),
        }
    }

    async fn connect<T>(
        &self,
        address: SocketAddr,
        connect: impl Future<Output = io::Result<T>>,
        now_ms: impl Fn() -> u64,
    ) -> io::Result<T> {
        if self.count.load(Ordering::Relaxed) > 0 && self.is_paused(address, now_ms()) {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        let connected = connect.await;
        if let Err(error) = &connected
            && is_exhausted(error)
        {
            self.pause(address, now_ms());
        }
        connected
    }

    fn is_paused(&self, address: SocketAddr, now_ms: u64) -> bool {
        let mut all = self.lock();
        let is_paused = all.get(&address).is_some_and(|until_ms| now_ms < *until_ms);
        if !is_paused {
            all.retain(|_, until_ms| now_ms < *until_ms);
            self.count.store(all.len(), Ordering::Relaxed);
        }
        is_paused
    }

    fn pause(&self, address: SocketAddr, now_ms: u64) {
        let mut all = self.lock();
        if all.len() < MAX_DESTINATIONS || all.contains_key(&address) {
            all.insert(address, now_ms.saturating_add(PAUSE_MS));
        }
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// Locks the map. Poisoning is ignored, because no code that can panic runs while the map is locked.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, u64>> {
        self.until_ms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Connects at a given time, with `system` as the result of the system call. Returns the error, and true if the
    /// system call was made.
    fn connect(all: &Destinations, port: u16, now_ms: u64, system: Result<(), ErrorKind>) -> (Option<ErrorKind>, bool) {
        let is_called = Cell::new(false);
        let system = async {
            is_called.set(true);
            system.map_err(io::Error::from)
        };
        let connect = all.connect(([127, 0, 0, 1], port).into(), system, || now_ms);
        let Poll::Ready(connected) = pin!(connect).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("connecting did not finish in one poll");
        };
        (connected.err().map(|error| error.kind()), is_called.get())
    }

    #[test]
    fn a_destination_without_a_local_port_is_paused_and_tried_again() {
        const NONE: Option<ErrorKind> = Some(ErrorKind::AddrNotAvailable);
        let all = Destinations::new();
        // Time, port of the destination, result of the system call, and the expected error, with true if the system
        // call was made.
        for (now_ms, port, system, expected) in [
            (1_000, 1, Ok(()), (None, true)),
            (
                1_000,
                1,
                Err(ErrorKind::ConnectionRefused),
                (Some(ErrorKind::ConnectionRefused), true),
            ),
            (1_000, 1, Err(ErrorKind::AddrNotAvailable), (NONE, true)),
            (1_000, 1, Ok(()), (NONE, false)),
            // Other destinations are not affected.
            (1_000, 2, Ok(()), (None, true)),
            (1_000 + PAUSE_MS - 1, 1, Ok(()), (NONE, false)),
            (1_000 + PAUSE_MS, 1, Err(ErrorKind::AddrNotAvailable), (NONE, true)),
            (1_000 + PAUSE_MS, 1, Ok(()), (NONE, false)),
            (1_000 + 2 * PAUSE_MS, 1, Ok(()), (None, true)),
            (1_000 + 2 * PAUSE_MS, 1, Ok(()), (None, true)),
        ] {
            assert_eq!(connect(&all, port, now_ms, system), expected, "port {port} at {now_ms}");
        }
        assert_eq!(
            all.count.load(Ordering::Relaxed),
            0,
            "an expired pause is still in the map"
        );
    }

    #[test]
    fn the_number_of_paused_destinations_is_bounded() {
        let all = Destinations::new();
        for port in 1..=MAX_DESTINATIONS as u16 + 1 {
            let (_, is_called) = connect(&all, port, 1_000, Err(ErrorKind::AddrNotAvailable));
            assert!(is_called, "port {port}");
        }
        let last = MAX_DESTINATIONS as u16;
        assert!(!connect(&all, last, 1_000, Ok(())).1 && connect(&all, last + 1, 1_000, Ok(())).1);
    }
}
