//! State shared by all routes of one server: verified credentials, failed attempts, running verifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::attempts::{Attempts, WrongGuess};
use crate::fingerprint::Fingerprints;
use crate::users::UserFiles;
use crate::verified::Verified;

/// Maximum number of verifications that wait or run, in the whole server. Further requests with unverified credentials
/// get 503. Each waiting verification occupies about 1 KiB. The limit permits four connections with 128 streams each to
/// begin at the same time.
pub const MAX_PENDING: usize = 512;

/// State shared by all routes of a server. It outlives a reload, so a reload does not release a throttled client.
pub struct State {
    pub(crate) fingerprints: Fingerprints,
    pub(crate) verified: Verified,
    pub(crate) attempts: Attempts,
    pub(crate) files: UserFiles,
    /// Number of permits in use.
    pending: AtomicUsize,
}

impl State {
    /// Creates the state. `key` must be random and secret.
    pub fn new(key: [u8; 32]) -> Arc<State> {
        Arc::new(State {
            fingerprints: Fingerprints::new(key),
            verified: Verified::default(),
            attempts: Attempts::default(),
            files: UserFiles::default(),
            pending: AtomicUsize::new(0),
        })
    }

    /// Returns the wrong credentials that clients have tried recently, for a process with the same key.
    pub fn wrong_guesses(&self, now_ms: u64) -> Vec<WrongGuess> {
        self.attempts.wrong(now_ms)
    }

    /// Adds wrong credentials that a client has tried at another process with the same key.
    pub fn adopt_wrong_guess(&self, guess: WrongGuess, now_ms: u64) {
        self.attempts.adopt(guess, now_ms);
    }

    /// Returns the number of verifications that wait or run.
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }
}

/// Permit for one verification. There are [`MAX_PENDING`] permits.
pub(crate) struct Permit(Arc<State>);

impl Permit {
    /// Takes a permit; `None` if all are taken.
    pub fn take(state: &Arc<State>) -> Option<Permit> {
        let take = |taken: usize| (taken < MAX_PENDING).then_some(taken + 1);
        let update = state.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        update.is_ok().then(|| Permit(Arc::clone(state)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}
