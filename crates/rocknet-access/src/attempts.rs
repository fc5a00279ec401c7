//! Throttle of failed attempts: limits the passwords that a client address can try per minute.
//!
//! It counts distinct credentials, not requests: a browser that sends the same wrong password with every image of a
//! page has made one guess. The guesses of a client are counted in a window of one minute, which begins with the first
//! guess. Credentials that failed are not verified again within this window. A success does not reset the count;
//! otherwise an attacker with an account could log in between guesses and never be throttled.
//!
//! Credentials are identified by a tag: 64 bits of a keyed hash. Times are in milliseconds of a monotonic clock, which
//! the caller reads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rocknet_config::client_ranges::client_network;

use crate::addresses::Client;

/// Maximum number of distinct wrong credentials in a window. A user mistypes fewer, and a program can try at most
/// 14,400 a day.
pub const MAX_GUESSES: usize = 10;

/// Length of the window in milliseconds. A client that reaches the maximum is throttled until the window ends.
pub const WINDOW_MS: u64 = 60_000;

/// Maximum number of addresses in one generation: the capacity of a hash table with 8,192 slots, of which seven eighths
/// are used.
const MAX_GENERATION: usize = 7_168;

/// Maximum number of client addresses that are remembered. A flood from more addresses evicts the oldest, but the flood
/// remains slow, because each of its guesses requires a verification.
pub const MAX_CLIENTS: usize = 2 * MAX_GENERATION;

/// Maximum memory of both generations in bytes. Each slot has a control byte.
pub const MAX_BYTES: usize = 2 * 8_192 * (size_of::<(u128, Guesses)>() + 1);

/// Decision of the throttle about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The attempt may be made and counts as a guess. The caller must end it with [`Attempts::succeed`],
    /// [`Attempts::fail`] or [`Attempts::cancel`].
    Attempt,
    /// The credentials were already found wrong within the window.
    KnownWrong,
    /// The client has used all guesses of its window, or its remaining guesses are being verified.
    Throttled { retry_after_s: u64 },
}

/// Wrong credentials that a client has tried, for another process that computes tags with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongGuess {
    /// Client: the bits of its IPv4-mapped address, or of its IPv6 network (/64); [`u128::MAX`] for all clients of Unix
    /// sockets.
    pub client: u128,
    /// Milliseconds until the window of the client ends.
    pub left_ms: u64,
    /// Tag of the credentials.
    pub tag: u64,
}

/// Credentials that one client address tried within a window.
#[derive(Debug, Clone, Copy)]
struct Guesses {
    /// End of the window.
    until_ms: u64,
    /// Tags of the credentials; the first `count` are in use.
    tags: [u64; MAX_GUESSES],
    count: u8,
    /// One bit for each tag: set if the credentials were wrong, clear while they are being verified.
    wrong: u16,
    /// For each tag, the number of requests whose verification runs or waits. Unused for wrong credentials.
    requests: [u16; MAX_GUESSES],
}

/// Clients that tried credentials recently, in two generations. A full current generation replaces the previous one.
#[derive(Default)]
pub(crate) struct Attempts {
    tables: Mutex<Generations>,
    /// Latest time at which the throttling of a client ends. From this time on, clients need not be looked up.
    throttled_until_ms: AtomicU64,
}

#[derive(Default)]
struct Generations {
    current: HashMap<u128, Guesses>,
    previous: HashMap<u128, Guesses>,
}

impl Attempts {
    /// Returns the seconds that the client has to wait; `None` if it is not throttled. Takes no lock while no client is
    /// throttled.
    pub fn throttled_s(&self, client: Client, now_ms: u64) -> Option<u64> {
        if now_ms >= self.throttled_until_ms.load(Ordering::Relaxed) {
            return None;
        }
        self.lock().find(key(client))?.throttled_s(now_ms)
    }

    /// Begins an attempt with the credentials of this tag.
    pub fn begin(&self, client: Client, tag: u64, now_ms: u64) -> Admission {
        let mut tables = self.lock();
        let guesses = tables.entry(key(client), now_ms);
        if let Some(retry_after_s) = guesses.throttled_s(now_ms) {
            return Admission::Throttled { retry_after_s };
        }
        match guesses.position(tag) {
            Some(at) if guesses.is_wrong(at) => Admission::KnownWrong,
            // The same credentials are already being verified. The verification that runs later may find the result of
            // the earlier one.
            Some(at) if guesses.add_request(at) => Admission::Attempt,
            Some(_) => Admission::Throttled { retry_after_s: 1 },
            None if guesses.push(tag) => Admission::Attempt,
            // All remaining guesses are being verified, which takes less than a second.
            None => Admission::Throttled { retry_after_s: 1 },
        }
    }

    /// Returns true if these credentials were already found wrong within the window.
    pub fn is_wrong(&self, client: Client, tag: u64, now_ms: u64) -> bool {
        let tables = self.lock();
        let guesses = tables.find(key(client)).filter(|guesses| now_ms < guesses.until_ms);
        guesses.is_some_and(|guesses| guesses.position(tag).is_some_and(|at| guesses.is_wrong(at)))
    }

    /// Ends an attempt with correct credentials. It no longer counts as a guess.
    pub fn succeed(&self, client: Client, tag: u64) {
        if let Some(guesses) = self.lock().find_mut(key(client)) {
            guesses.remove(tag);
        }
    }

    /// Ends an attempt whose credentials were not verified. The credentials count until the last of their attempts
    /// ends. Otherwise, a client could send each guess twice and give up one of the requests.
    pub fn cancel(&self, client: Client, tag: u64) {
        if let Some(guesses) = self.lock().find_mut(key(client)) {
            guesses.remove_request(tag);
        }
    }

    /// Ends an attempt with wrong credentials. Returns the seconds that the client has to wait if it is now throttled.
    /// Returns `None` if it is not, or if another request has counted these credentials already.
    pub fn fail(&self, client: Client, tag: u64, now_ms: u64) -> Option<u64> {
        let mut tables = self.lock();
        let guesses = tables.entry(key(client), now_ms);
        // A request with the same credentials has already counted this guess.
        if guesses.position(tag).is_some_and(|at| guesses.is_wrong(at)) {
            return None;
        }
        // The window may have ended in the meantime. This guess is then the first of a new window.
        if guesses.position(tag).is_none() {
            guesses.push(tag);
        }
        if let Some(at) = guesses.position(tag) {
            guesses.wrong |= 1 << at;
        }
        let retry_after_s = guesses.throttled_s(now_ms)?;
        self.throttled_until_ms.fetch_max(guesses.until_ms, Ordering::Relaxed);
        Some(retry_after_s)
    }

    /// Returns the wrong guesses of all clients whose windows have not ended.
    pub fn wrong(&self, now_ms: u64) -> Vec<WrongGuess> {
        let tables = self.lock();
        // The older generation comes first, because the process that adopts the guesses evicts the first ones first.
        let clients = tables.previous.iter().chain(&tables.current);
        let clients = clients.filter(|(_, guesses)| now_ms < guesses.until_ms);
        let of_client = |(client, guesses): (&u128, &Guesses)| {
            let (client, left_ms, guesses) = (*client, guesses.until_ms - now_ms, *guesses);
            let wrong = (0..guesses.count.into()).filter(move |at| guesses.is_wrong(*at));
            wrong.map(move |at| WrongGuess {
                client,
                left_ms,
                tag: guesses.tags[at],
            })
        };
        clients.flat_map(of_client).collect()
    }

    /// Adds a wrong guess of another process. Its window lasts for at most [`WINDOW_MS`] from now on.
    pub fn adopt(&self, guess: WrongGuess, now_ms: u64) {
        let until_ms = now_ms.saturating_add(guess.left_ms.min(WINDOW_MS));
        if until_ms == now_ms {
            return;
        }
        let mut tables = self.lock();
        let guesses = tables.entry(guess.client, now_ms);
        if guesses.count == 0 {
            guesses.until_ms = until_ms;
        }
        if guesses.position(guess.tag).is_none() {
            guesses.push(guess.tag);
        }
        if let Some(at) = guesses.position(guess.tag) {
            guesses.wrong |= 1 << at;
        }
        if guesses.throttled_s(now_ms).is_some() {
            self.throttled_until_ms.fetch_max(guesses.until_ms, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn find(&self, key: u128) -> Option<&Guesses> {
        self.current.get(&key).or_else(|| self.previous.get(&key))
    }

    fn find_mut(&mut self, key: u128) -> Option<&mut Guesses> {
        match self.current.get_mut(&key) {
            Some(guesses) => Some(guesses),
            None => self.previous.get_mut(&key),
        }
    }

    /// Returns the guesses of a client in its current window, and moves them to the current generation. Begins a window
    /// if the client has none.
    fn entry(&mut self, key: u128, now_ms: u64) -> &mut Guesses {
        let stored = self.current.remove(&key).or_else(|| self.previous.remove(&key));
        if self.current.len() >= MAX_GENERATION {
            self.previous = std::mem::take(&mut self.current);
        }
        let guesses = stored
            .filter(|guesses| now_ms < guesses.until_ms)
            .unwrap_or_else(|| Guesses::new(now_ms));
        self.current.entry(key).insert_entry(guesses).into_mut()
    }
}

impl Guesses {
    fn new(now_ms: u64) -> Guesses {
        Guesses {
            until_ms: now_ms.saturating_add(WINDOW_MS),
            tags: [0; MAX_GUESSES],
            count: 0,
            wrong: 0,
            requests: [0; MAX_GUESSES],
        }
    }

    fn throttled_s(&self, now_ms: u64) -> Option<u64> {
        let left_ms = self.until_ms.checked_sub(now_ms).filter(|left_ms| *left_ms > 0)?;
        (self.wrong.count_ones() as usize >= MAX_GUESSES).then(|| left_ms.div_ceil(1_000))
    }

    fn position(&self, tag: u64) -> Option<usize> {
        self.tags[..self.count.into()].iter().position(|stored| *stored == tag)
    }

    fn is_wrong(&self, at: usize) -> bool {
        self.wrong & 1 << at != 0
    }

    /// Adds the tag of credentials with one request. Returns false if there is no room.
    fn push(&mut self, tag: u64) -> bool {
        let Some(free) = self.tags.get_mut(usize::from(self.count)) else {
            return false;
        };
        *free = tag;
        self.requests[usize::from(self.count)] = 1;
        self.count += 1;
        true
    }

    /// Counts a further request with the same credentials. Returns false if there are too many.
    fn add_request(&mut self, at: usize) -> bool {
        let sum = self.requests[at].checked_add(1);
        self.requests[at] = sum.unwrap_or(u16::MAX);
        sum.is_some()
    }

    /// Removes one request, and with the last one also its credentials, unless they are wrong.
    fn remove_request(&mut self, tag: u64) {
        if let Some(at) = self.position(tag) {
            self.requests[at] = self.requests[at].saturating_sub(1);
            if self.requests[at] == 0 {
                self.remove(tag);
            }
        }
    }

    /// Removes credentials that are being verified. Wrong credentials remain.
    fn remove(&mut self, tag: u64) {
        let Some(at) = self.position(tag).filter(|at| !self.is_wrong(*at)) else {
            return;
        };
        // The last tag moves to the free position.
        let last = usize::from(self.count) - 1;
        self.tags[at] = self.tags[last];
        self.requests[at] = self.requests[last];
        let last_is_wrong = self.is_wrong(last);
        self.wrong &= !(1 << last);
        if last_is_wrong && last != at {
            self.wrong |= 1 << at;
        }
        self.count -= 1;
    }
}

/// Returns the key of a client. All clients of Unix sockets share a key, which no address has.
fn key(client: Client) -> u128 {
    match client {
        Client::Unix => u128::MAX,
        Client::Ip(ip) => client_network(ip),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn client(text: &str) -> Client {
        Client::Ip(text.parse().unwrap())
    }

    /// Makes one attempt with wrong credentials for each tag.
    fn fail(attempts: &Attempts, client: Client, tags: std::ops::Range<u64>, now_ms: u64) {
        for tag in tags {
            assert_eq!(attempts.begin(client, tag, now_ms), Admission::Attempt, "{tag}");
            attempts.fail(client, tag, now_ms);
        }
    }

    #[test]
    fn ten_distinct_guesses_are_allowed_per_minute() {
        let (attempts, one) = (Attempts::default(), client("192.0.2.1"));
        fail(&attempts, one, 0..9, 1_000);
        assert_eq!(attempts.throttled_s(one, 1_000), None);
        assert_eq!(attempts.begin(one, 9, 2_500), Admission::Attempt);
        assert_eq!(attempts.fail(one, 9, 2_500), Some(59));
        assert_eq!(
            attempts.begin(one, 10, 2_500),
            Admission::Throttled { retry_after_s: 59 }
        );
        assert_eq!(attempts.throttled_s(one, 60_999), Some(1));
        assert_eq!(attempts.throttled_s(client("192.0.2.2"), 2_500), None);
        // The window has ended.
        assert_eq!(attempts.throttled_s(one, 61_000), None);
        assert_eq!(attempts.begin(one, 10, 61_000), Admission::Attempt);
    }

    #[test]
    fn a_repeated_guess_counts_once() {
        let (attempts, one) = (Attempts::default(), client("192.0.2.1"));
        fail(&attempts, one, 7..8, 0);
        for _ in 0..100 {
            assert_eq!(attempts.begin(one, 7, 1), Admission::KnownWrong);
            assert!(attempts.is_wrong(one, 7, 1));
        }
        fail(&attempts, one, 8..16, 1);
        assert_eq!(attempts.throttled_s(one, 1), None);
        // In the next window the credentials are verified again.
        assert!(!attempts.is_wrong(one, 7, WINDOW_MS));
        assert_eq!(attempts.begin(one, 7, WINDOW_MS), Admission::Attempt);
    }

    #[test]
    fn guesses_in_progress_count() {
        let (attempts, one) = (Attempts::default(), client("192.0.2.1"));
        for tag in 0..10 {
            assert_eq!(attempts.begin(one, tag, 0), Admission::Attempt);
        }
        assert_eq!(attempts.begin(one, 10, 0), Admission::Throttled { retry_after_s: 1 });
        // Concurrent attempts with the same credentials are one guess.
        assert_eq!(attempts.begin(one, 3, 0), Admission::Attempt);
        attempts.succeed(one, 3);
        attempts.succeed(one, 3);
        attempts.cancel(one, 5);
        assert_eq!(attempts.begin(one, 10, 0), Admission::Attempt);
        assert_eq!(attempts.begin(one, 11, 0), Admission::Attempt);
        for tag in [0, 1, 2, 4, 6, 7, 8, 9, 10] {
            assert_eq!(attempts.fail(one, tag, 0), None, "{tag}");
        }
        assert_eq!(attempts.fail(one, 11, 0), Some(60));
    }

    #[test]
    fn a_cancelled_twin_does_not_free_the_guess_of_the_other() {
        let (attempts, one) = (Attempts::default(), client("192.0.2.1"));
        for tag in 0..10 {
            assert_eq!(attempts.begin(one, tag, 0), Admission::Attempt);
            assert_eq!(attempts.begin(one, tag, 0), Admission::Attempt);
            attempts.cancel(one, tag);
        }
        assert_eq!(attempts.begin(one, 10, 0), Admission::Throttled { retry_after_s: 1 });
        // Without its twin, a cancelled attempt frees its guess, and the last one moves to its place with its requests.
        assert_eq!(attempts.begin(one, 9, 0), Admission::Attempt);
        attempts.cancel(one, 3);
        attempts.cancel(one, 9);
        assert_eq!(attempts.begin(one, 10, 0), Admission::Attempt);
        assert_eq!(attempts.begin(one, 11, 0), Admission::Throttled { retry_after_s: 1 });
    }

    #[test]
    fn a_success_does_not_reset_the_count() {
        let (attempts, one) = (Attempts::default(), client("192.0.2.1"));
        for tag in 0..9 {
            fail(&attempts, one, tag..tag + 1, 0);
            assert_eq!(attempts.begin(one, 99, 0), Admission::Attempt);
            attempts.succeed(one, 99);
        }
        fail(&attempts, one, 9..10, 0);
        assert_eq!(attempts.begin(one, 99, 0), Admission::Throttled { retry_after_s: 60 });
    }

    #[test]
    fn addresses_of_an_ipv6_network_count_as_one() {
        let attempts = Attempts::default();
        fail(&attempts, client("2001:db8:0:1::1"), 0..10, 0);
        assert!(attempts.throttled_s(client("2001:db8:0:1:ffff::2"), 0).is_some());
        assert_eq!(attempts.throttled_s(client("2001:db8:0:2::1"), 0), None);
        fail(&attempts, client("::ffff:192.0.2.1"), 0..10, 0);
        assert!(attempts.throttled_s(client("192.0.2.1"), 0).is_some());
        assert_eq!(attempts.throttled_s(client("::1"), 0), None);
        assert_eq!(attempts.throttled_s(Client::Unix, 0), None);
    }

    #[test]
    fn wrong_guesses_are_adopted() {
        let (old, new) = (Attempts::default(), Attempts::default());
        let (throttled, other, ended) = (client("192.0.2.1"), client("2001:db8::1"), client("192.0.2.3"));
        fail(&old, ended, 0..10, 0);
        fail(&old, throttled, 0..10, 50_000);
        fail(&old, other, 0..9, 50_000);
        // Guesses that are being verified may be right.
        assert_eq!(old.begin(other, 9, 50_000), Admission::Attempt);
        // The clocks of the processes have other origins.
        let (now, of_new) = (70_000, 5_000);
        for guess in old.wrong(now) {
            new.adopt(guess, of_new);
        }
        for at in [of_new, of_new + 39_999] {
            assert_eq!(
                new.throttled_s(throttled, at),
                old.throttled_s(throttled, at + now - of_new)
            );
        }
        assert_eq!(new.throttled_s(throttled, of_new + 40_000), None);
        assert!(new.is_wrong(other, 8, of_new) && !new.is_wrong(other, 9, of_new));
        assert_eq!(new.begin(other, 9, of_new), Admission::Attempt);
        assert_eq!(new.fail(other, 9, of_new), Some(40));
        assert_eq!(new.begin(ended, 1, of_new), Admission::Attempt);
        let wrong = |left_ms, tag| WrongGuess {
            client: key(client("192.0.2.4")),
            left_ms,
            tag,
        };
        // A window is never longer than that of a guess in this process, and has no more guesses.
        new.adopt(wrong(0, 0), of_new);
        assert!(!new.is_wrong(client("192.0.2.4"), 0, of_new));
        for tag in 0..100 {
            new.adopt(wrong(u64::MAX, tag), of_new);
        }
        assert_eq!(new.throttled_s(client("192.0.2.4"), of_new), Some(60));
    }

    #[test]
    fn a_flood_of_addresses_is_bounded() {
        let (attempts, first) = (Attempts::default(), client("192.0.2.1"));
        fail(&attempts, first, 0..10, 0);
        let address = |number: u32| Client::Ip(IpAddr::V4(number.into()));
        for number in 0..MAX_GENERATION as u32 {
            attempts.begin(address(number), 1, 0);
        }
        // The first client is still stored, in the previous generation.
        assert!(attempts.throttled_s(first, 0).is_some());
        for number in 0..3 * MAX_CLIENTS as u32 {
            attempts.begin(address(number), 1, 0);
        }
        let tables = attempts.lock();
        assert!(tables.current.len() <= MAX_GENERATION && tables.previous.len() <= MAX_GENERATION);
    }
}
