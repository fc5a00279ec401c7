//! The supervisor threads of the isolated libraries of one server. Stopping the server waits until their processes have
//! ended.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::control::ControllerEntry;
use super::lock::lock;
use super::supervisor::{self, SupervisedProcess};
use rocknet_io::owned_thread::OwnedThread;

/// Supervisors of a server, one for each loaded version of a library. Entries of ended threads are removed at the next
/// start.
#[derive(Default)]
pub struct Supervisors(Mutex<Vec<(Arc<SupervisedProcess>, OwnedThread)>>);

impl Supervisors {
    /// Starts a process for a library, waits until it is ready, and returns its controllers.
    ///
    /// # Errors
    ///
    /// The message is the reason why the process is not ready.
    pub fn start(&self, path: &Path, image: File) -> Result<(Arc<SupervisedProcess>, Vec<ControllerEntry>), String> {
        let (supervised, entries, thread) = supervisor::start(path, image)?;
        let mut all = lock(&self.0);
        all.retain(|(_, thread)| !thread.has_ended());
        all.push((Arc::clone(&supervised), thread));
        Ok((supervised, entries))
    }

    /// Ends all processes, even those of libraries that are still in use. Returns true if all have ended by `deadline`.
    pub fn stop(&self, deadline: Instant) -> bool {
        let all = std::mem::take(&mut *lock(&self.0));
        all.iter().for_each(|(supervised, _)| supervised.stop());
        // Collected first, because `Iterator::all` stops at the first thread that has not ended, and would not join the
        // following ones.
        let ended: Vec<bool> = all.into_iter().map(|(_, thread)| thread.join(deadline)).collect();
        ended.into_iter().all(|ended| ended)
    }
}
