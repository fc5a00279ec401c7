//! Sessions of a site that are stored for early data. Each is returned only once.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::server::StoresServerSessions;
use zeroize::Zeroizing;

/// Number of sessions that a site keeps for early data. Beyond this number, the oldest sessions are dropped, and their
/// clients make a full handshake. A session occupies less than 1 KiB.
pub const MAX_SESSIONS: usize = 4096;

/// Sessions of one site. Taking a session removes it, so that each session is resumed only once and a replay of its
/// early data is rejected (RFC 8446 §8.1).
pub struct SessionStore {
    /// Settings that the clients of these sessions remember for early data.
    pub(super) remembered: Vec<u8>,
    sessions: Mutex<Sessions>,
}

/// A stored session.
#[derive(PartialEq, Eq)]
pub struct StoredSession {
    /// Ticket with which the client resumes the session.
    pub id: Vec<u8>,
    /// Session as the TLS library encodes it, with its secret.
    pub state: Zeroizing<Vec<u8>>,
}

#[derive(Default)]
struct Sessions {
    by_id: HashMap<Vec<u8>, Zeroizing<Vec<u8>>>,
    /// IDs from the oldest to the newest, including IDs of sessions that were taken.
    order: VecDeque<Vec<u8>>,
    /// True if another process has the sessions.
    is_closed: bool,
}

impl Sessions {
    /// Stores a session. Returns false if another process has the sessions.
    fn insert(&mut self, id: Vec<u8>, state: Zeroizing<Vec<u8>>) -> bool {
        if self.is_closed {
            return false;
        }
        while self.by_id.len() >= MAX_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
        // IDs of sessions that were taken are removed all at once, so that taking a session needs no search.
        if self.order.len() >= 2 * MAX_SESSIONS {
            self.order.retain(|id| self.by_id.contains_key(id));
        }
        self.order.push_back(id.clone());
        self.by_id.insert(id, state);
        true
    }
}

impl SessionStore {
    /// Creates an empty store. `remembered`: settings that the clients of its sessions remember for early data: QUIC
    /// transport parameters and HTTP/3 settings (RFC 9000 §7.4.1, RFC 9114 §7.2.4.2). They are only compared.
    pub fn new(remembered: &[u8]) -> SessionStore {
        SessionStore {
            remembered: remembered.to_vec(),
            sessions: Mutex::default(),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all sessions, from the oldest to the newest, for another process. No session is stored any more until
    /// [`SessionStore::open`] is called, because the other process gets the handshakes that would resume it.
    pub fn close(&self) -> Vec<StoredSession> {
        let mut sessions = self.sessions();
        sessions.is_closed = true;
        let order = std::mem::take(&mut sessions.order);
        let taken = order.into_iter().filter_map(|id| {
            let state = sessions.by_id.remove(&id)?;
            Some(StoredSession { id, state })
        });
        taken.collect()
    }

    /// Stores sessions again after [`SessionStore::close`].
    pub fn open(&self) {
        self.sessions().is_closed = false;
    }

    /// Adds sessions of another process.
    pub fn extend(&self, added: Vec<StoredSession>) {
        let mut sessions = self.sessions();
        for StoredSession { id, state } in added {
            sessions.insert(id, state);
        }
    }
}

impl StoresServerSessions for SessionStore {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        self.sessions().insert(id, Zeroizing::new(state))
    }

    /// Returns nothing, because reading a session without removing it would permit a replay. For TLS 1.3, the only
    /// version over QUIC, the TLS library calls `take` instead.
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.sessions().by_id.remove(id)?;
        Some(std::mem::take(&mut *state))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Shows no secret.
impl fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSession").finish_non_exhaustive()
    }
}

/// Shows no session.
impl fmt::Debug for SessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Vec<u8> {
        number.to_le_bytes().to_vec()
    }

    #[test]
    fn sessions_are_returned_once_and_bounded() {
        let store = SessionStore::new(&[]);
        for number in 0..=MAX_SESSIONS {
            assert!(store.put(id(number), vec![1]));
        }
        assert_eq!(store.take(&id(0)), None, "the oldest session is dropped");
        assert_eq!(store.get(&id(1)), None);
        assert_eq!(store.take(&id(1)), Some(vec![1]));
        assert_eq!(store.take(&id(1)), None);
        // Sessions that were taken leave room for as many others.
        let first = MAX_SESSIONS + 1;
        for number in first..first + 3 * MAX_SESSIONS {
            store.put(id(number), vec![2]);
            store.take(&id(number));
        }
        assert_eq!(store.take(&id(2)), Some(vec![1]));
        let sessions = store.sessions();
        assert_eq!(sessions.by_id.len(), MAX_SESSIONS - 2);
        assert!(sessions.order.len() <= 2 * MAX_SESSIONS);
    }

    #[test]
    fn every_session_is_in_one_process() {
        let (old, new) = (SessionStore::new(&[]), SessionStore::new(&[]));
        for number in 0..3 {
            old.put(id(number), vec![number as u8]);
        }
        old.take(&id(1));
        new.extend(old.close());
        assert_eq!(old.take(&id(0)), None);
        assert!(!old.put(id(9), vec![9]) && old.take(&id(9)).is_none());
        assert_eq!(new.take(&id(0)), Some(vec![0]));
        assert_eq!(new.take(&id(1)), None, "it was resumed in the old process");
        assert_eq!(new.take(&id(2)), Some(vec![2]));
        old.open();
        assert!(old.put(id(9), vec![9]) && old.take(&id(9)).is_some());
    }
}
