//! A thread that its owner joins with a deadline.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// A named thread. Dropping this value leaves the thread running.
pub struct OwnedThread {
    thread: JoinHandle<()>,
    /// Disconnects when the function of the thread returns or panics; nothing is ever sent.
    ended: Receiver<()>,
}

impl OwnedThread {
    /// Starts a thread that runs `run`.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot create a thread.
    pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<OwnedThread> {
        let (running, ended) = channel::<()>();
        let run = move || {
            // Dropped after the call of `run`, even if `run` panics.
            let _running = running;
            run();
        };
        let thread = Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(OwnedThread { thread, ended })
    }

    /// Returns whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end of the thread, at most until `deadline`. Returns false if the deadline passed first.
    pub fn join(self, deadline: Instant) -> bool {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let has_ended = self.ended.recv_timeout(remaining) == Err(RecvTimeoutError::Disconnected);
        if has_ended {
            let _ = self.thread.join();
        }
        has_ended
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_thread_is_joined_when_it_returns_and_left_at_the_deadline() {
        let in_a_minute = || Instant::now() + Duration::from_secs(60);
        let returns = OwnedThread::start("returns", || {}).expect("a thread");
        assert!(returns.join(in_a_minute()));
        let panics = OwnedThread::start("panics", || panic!("on purpose")).expect("a thread");
        assert!(panics.join(in_a_minute()));
        let (end, ended) = channel::<()>();
        let waits = OwnedThread::start("waits", move || {
            let _ = ended.recv();
        })
        .expect("a thread");
        assert!(!waits.has_ended() && !waits.join(Instant::now()));
        drop(end);
    }
}
