//! Thread that reads changed files of banned addresses, and writes new bans to the state folder.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rocknet_io::owned_thread::OwnedThread;

/// Interval at which files are examined. An examination is one `stat` for each file.
pub const FILES_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of the work if there are no files. It then only ends bans of networks, forgets old bans of clients, and
/// writes the store.
pub const IDLE_INTERVAL: Duration = Duration::from_secs(60);

/// Factor that limits the work to about 5 % of the time: after the work, the thread pauses for this multiple of the
/// work's duration. Work of more than 25 ms may take a larger share, because [`MAX_PAUSE`] limits the pause.
const PAUSE_FACTOR: u32 = 20;

/// Maximum pause after the work. The stop of the server waits for the end of the pause.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// Running thread.
pub struct Keeper {
    wake: SyncSender<()>,
    thread: OwnedThread,
}

impl Keeper {
    /// Starts the thread. `work` returns the time until it is called again, and `None` to end the thread.
    ///
    /// # Errors
    ///
    /// Fails if the system cannot create a thread.
    pub fn start(work: impl FnMut() -> Option<Duration> + Send + 'static) -> io::Result<Keeper> {
        let (wake, woken) = sync_channel(1);
        let thread = OwnedThread::start("rn-bans", move || run(work, &woken))?;
        Ok(Keeper { wake, thread })
    }

    /// Starts the work now. A full queue means that it is about to start.
    pub fn wake(&self) {
        let _ = self.wake.try_send(());
    }

    /// Ends the thread. Returns false if it has not ended by `deadline`.
    pub fn stop(self, deadline: Instant) -> bool {
        drop(self.wake);
        self.thread.join(deadline)
    }
}

fn run(mut work: impl FnMut() -> Option<Duration>, woken: &Receiver<()>) {
    loop {
        let begun = Instant::now();
        let Some(interval) = work() else { return };
        // Many bans in a short time are written together.
        std::thread::sleep((begun.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE));
        if woken.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}
