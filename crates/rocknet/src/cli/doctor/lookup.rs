//! Looks host names up, many at a time and within one deadline.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of lookups at a time. Each has a thread, because the resolver of the system blocks.
const MAX_THREADS: usize = 32;

/// Result of a lookup.
#[derive(Debug)]
pub(super) enum Resolved {
    /// Addresses of the name.
    Addresses(Vec<IpAddr>),
    /// The resolver found none, or failed.
    Failed(io::Error),
    /// No reply before the deadline.
    TimedOut,
}

/// A function that looks a name up and may block.
pub(super) type Resolver = fn(&str) -> io::Result<Vec<IpAddr>>;

/// Looks a name up as other programs of this machine do: in the hosts file, in the DNS, and by further services.
pub(super) fn of_system(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = (name, 0).to_socket_addrs()?.map(|address| address.ip()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// Looks all names up and returns their results after at most `limit`. A lookup that takes longer continues on its
/// thread until the resolver gives up, and no further lookup begins.
pub(super) fn resolve(names: &[String], resolver: Resolver, limit: Duration) -> BTreeMap<String, Resolved> {
    let deadline = Instant::now() + limit;
    let queue: Arc<Mutex<VecDeque<String>>> = Arc::new(Mutex::new(names.iter().cloned().collect()));
    let (sender, results) = mpsc::channel();
    for _ in 0..names.len().min(MAX_THREADS) {
        let (queue, sender) = (Arc::clone(&queue), sender.clone());
        let work = move || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(name) = next else { break };
                let resolved = match resolver(&name) {
                    Ok(addresses) => Resolved::Addresses(addresses),
                    Err(error) => Resolved::Failed(error),
                };
                if sender.send((name, resolved)).is_err() {
                    break;
                }
            }
        };
        // Without a further thread, those that have started look up all names.
        if thread::Builder::new().name("rn-lookup".to_owned()).spawn(work).is_err() {
            break;
        }
    }
    drop(sender);
    let mut found = BTreeMap::new();
    while let Ok((name, resolved)) = results.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        found.insert(name, resolved);
    }
    queue.lock().unwrap_or_else(PoisonError::into_inner).clear();
    for name in names {
        found.entry(name.clone()).or_insert(Resolved::TimedOut);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Condvar;

    use super::*;

    /// Never notified, so that a lookup of `slow` waits without end.
    static NEVER: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

    fn resolver(name: &str) -> io::Result<Vec<IpAddr>> {
        match name {
            "slow" => {
                let guard = NEVER.0.lock().unwrap();
                let _forever = NEVER.1.wait_while(guard, |()| true).unwrap();
                unreachable!("nothing notifies it")
            }
            "none" => Err(io::Error::other("no such name")),
            _ => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
        }
    }

    #[test]
    fn a_slow_lookup_delays_no_other_and_ends_at_the_deadline() {
        let names: Vec<String> = ["slow", "a", "none", "b"].map(str::to_owned).to_vec();
        let limit = Duration::from_millis(500);
        let begun = Instant::now();
        let found = resolve(&names, resolver, limit);
        assert!(begun.elapsed() >= limit, "{:?}", begun.elapsed());
        assert!(begun.elapsed() < limit * 20, "{:?}", begun.elapsed());
        assert!(matches!(&found["slow"], Resolved::TimedOut));
        assert!(matches!(&found["none"], Resolved::Failed(_)));
        for name in ["a", "b"] {
            assert!(
                matches!(&found[name], Resolved::Addresses(all) if all.len() == 1),
                "{name}"
            );
        }
        assert!(resolve(&[], resolver, limit).is_empty());
    }
}
