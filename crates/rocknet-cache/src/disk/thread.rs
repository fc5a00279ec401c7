//! Thread of the log: waits for the folder, reads the index, and writes records until the log is closed.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tracing::Level;

use super::eviction::IsInMemory;
use super::folder::{Folder, State, boot_id};
use super::log::{CloseReason, EarlyChanges, WRITE};
use super::recovery::{self, RecoveryError};
use super::shared::Shared;
use super::time::unix_s;
use super::writer::Writer;

/// Time between two attempts to take the lock of another process.
const LOCK_RETRY: Duration = Duration::from_millis(500);

/// Time for which a log that is not used any longer waits for another process, such as the old one of an upgrade.
const DISCARD_WAIT: Duration = Duration::from_secs(60);

/// Time until the log is opened again after an error.
const ERROR_RETRY: Duration = Duration::from_secs(60);

/// Time for which the first waiting record waits for others, so that writes are large.
pub(super) const GATHER: Duration = Duration::from_millis(50);

/// Time after which the thread looks for a change of the capacity, whose signal may come while it does not wait.
const IDLE: Duration = Duration::from_secs(5);

/// Minimum and maximum size of a segment in bytes. A log of 16 MiB or more has at least 16 segments.
const SEGMENT: (u64, u64) = (1 << 20, 64 << 20);

/// Returns the size of a segment of a log with this capacity.
pub(super) fn segment_size(capacity: u64) -> u32 {
    let size = (capacity / 16).clamp(SEGMENT.0, SEGMENT.1);
    u32::try_from(size).unwrap_or(u32::MAX)
}

/// Runs until the log is closed. After a panic, the log is emptied, because it may lack changes.
pub(super) fn run(shared: &Shared, is_in_memory: &IsInMemory) {
    let serve = AssertUnwindSafe(|| serve_all(shared, is_in_memory));
    if catch_unwind(serve).is_err() {
        shared.close();
        tracing::error!("response cache on disk: its thread has panicked, so it is off until the server is restarted");
        if let Some(Err(error)) = shared.folder().map(|folder| folder.remove_all()) {
            tracing::warn!("response cache on disk: it cannot be emptied: {error}");
        }
    }
}

fn serve_all(shared: &Shared, is_in_memory: &IsInMemory) {
    let (mut must_clear, mut reported) = (false, String::new());
    let mut discard_until = None;
    let is_discarded = || shared.is_discarded.load(Ordering::SeqCst);
    // Changes that were made before the log was open have to reach it, even if the server stops. A log that is not used
    // any longer has to be emptied, even if it was not open.
    while !shared.is_closing() || is_discarded() || !shared.log().early.is_empty() {
        shared.close_if_due();
        // `level`: WARN for an error, INFO for an expected state.
        let mut report = |level: Level, message: String| {
            let path = shared.path.display();
            match message == reported {
                true => {}
                false if level == Level::WARN => {
                    tracing::warn!("response cache on disk: {path}: {message}; it is off until then");
                }
                false => tracing::info!("response cache on disk: {path}: {message}"),
            }
            reported = message;
        };
        match Writer::open(shared, is_in_memory, must_clear || is_discarded()) {
            Ok(Some(mut writer)) => {
                reported.clear();
                match writer.serve() {
                    Ok(()) => return writer.close(),
                    Err(error) => {
                        shared.stats.errors.fetch_add(1, Ordering::Relaxed);
                        must_clear = true;
                        writer.abandon();
                        let path = shared.path.display();
                        tracing::warn!(
                            "response cache on disk: {path}: {error}; it was emptied, and is off for {} seconds",
                            ERROR_RETRY.as_secs()
                        );
                        shared.pause(ERROR_RETRY);
                    }
                }
            }
            Ok(None) | Err(RecoveryError::System(_)) if shared.is_closing() => {
                let until = *discard_until.get_or_insert_with(|| Instant::now() + DISCARD_WAIT);
                if !is_discarded() || Instant::now() >= until {
                    let path = shared.path.display();
                    tracing::warn!(
                        "response cache on disk: {path}: it could not be opened before the server stopped, so it may \
                         contain purged or changed responses; delete the folder if no other process uses it"
                    );
                    return;
                }
                thread::sleep(LOCK_RETRY);
            }
            Ok(None) => {
                let message = "another process uses it; this one continues with it afterwards";
                report(Level::INFO, message.to_owned());
                shared.pause(LOCK_RETRY);
            }
            Err(RecoveryError::System(error)) => {
                let seconds = ERROR_RETRY.as_secs();
                let message = format!("it cannot be used: {error}; the next attempt is in {seconds} seconds");
                report(Level::WARN, message);
                shared.pause(ERROR_RETRY);
            }
            // Not reached, because `load` handles these errors.
            Err(RecoveryError::Closed | RecoveryError::TooLong | RecoveryError::Damaged) => {}
        }
    }
}

impl<'s> Writer<'s> {
    /// Opens the folder, and reads the index. `must_clear`: the segments lack changes, so they are deleted. Returns
    /// `None` while another process uses the folder.
    fn open(
        shared: &'s Shared,
        is_in_memory: &'s IsInMemory,
        must_clear: bool,
    ) -> Result<Option<Writer<'s>>, RecoveryError> {
        let Some(folder) = Folder::open(&shared.path).map_err(RecoveryError::System)? else {
            return Ok(None);
        };
        let mut writer = Writer {
            shared,
            folder: Arc::new(folder),
            is_in_memory,
            seed: 0,
            segment_size: segment_size(shared.capacity.load(Ordering::Relaxed)),
            segments: VecDeque::new(),
            active: None,
            end: 0,
            buffer: Vec::new(),
        };
        match writer.load(must_clear) {
            Ok(()) => Ok(Some(writer)),
            Err(error) => {
                writer.leave();
                Err(error)
            }
        }
    }

    /// Reads the index.
    fn load(&mut self, must_clear: bool) -> Result<(), RecoveryError> {
        let (shared, system) = (self.shared, RecoveryError::System);
        let state = self.folder.state().map_err(system)?;
        let state = match state.filter(|state| state.is_complete() && !must_clear) {
            Some(state) => state,
            None => {
                self.folder.remove_all().map_err(system)?;
                State::new()
            }
        };
        let was_closed = state.is_closed;
        let current = State {
            boot: boot_id(),
            is_closed: false,
            ..state
        };
        self.seed = current.seed;
        self.segments = self.folder.segments().map_err(system)?.into();
        // The state is on disk before segments change, except that the oldest ones may be dropped to make room for it.
        self.write_small(|folder| folder.set_state(&current)).map_err(system)?;
        shared.set_folder(Some(Arc::clone(&self.folder)), self.seed);
        let result = recovery::replay(shared, self.segments.make_contiguous(), was_closed, unix_s());
        match result {
            Ok(()) | Err(RecoveryError::Closed) => {}
            Err(error) => {
                let why = match error {
                    RecoveryError::System(error) => error.to_string(),
                    RecoveryError::Damaged => "its last segment is damaged".to_owned(),
                    _ => "reading its index took too long".to_owned(),
                };
                tracing::warn!("response cache on disk: {why}; it was emptied");
                self.clear().map_err(system)?;
            }
        }
        self.begin().map_err(system)
    }

    /// Applies the changes that were made while the log was not open (`early`), and opens it.
    fn begin(&mut self) -> io::Result<()> {
        let shared = self.shared;
        let mut log = shared.log();
        // If changes are lost, or cannot be applied because the server stops, the log is emptied. Otherwise, this
        // process or the next one would use responses without these changes.
        while log.early.are_lost || shared.is_closing() && !log.early.is_empty() {
            drop(log);
            self.clear()?;
            log = shared.log();
            // The loss is forgotten only now, so that the next attempt also empties the log if this one failed. Changes
            // of the meantime concern no response, because the log is empty.
            log.early = EarlyChanges::default();
        }
        if shared.is_closing() {
            return Ok(());
        }
        let early = std::mem::take(&mut log.early);
        let first = self.segments.back().map_or(0, |(last, _)| last.wrapping_add(1));
        log.open(first, self.segment_size);
        shared.set_first(log.next);
        let hashes = early.keys.iter().filter_map(|key| shared.hash_of(key));
        for hash in hashes.chain(early.hashes.iter().copied()) {
            shared.append_removal(&mut log, hash);
        }
        for purge in &early.purges {
            shared.append_purge(&mut log, purge);
        }
        for (site, url) in &early.urls {
            shared.append_url_change(&mut log, site, url);
        }
        shared.trim_all(&mut log);
        let (objects, bytes) = (shared.index.len(), shared.index.bytes());
        shared.is_ready.store(true, Ordering::Release);
        drop(log);
        tracing::info!("response cache on disk: {objects} responses of {bytes} bytes can be used");
        self.count_size();
        Ok(())
    }

    /// Writes records until the log is closed.
    ///
    /// # Errors
    ///
    /// Returns the error of the file system after which the log has to be emptied.
    fn serve(&mut self) -> io::Result<()> {
        let shared = self.shared;
        self.fit()?;
        loop {
            shared.close_if_due();
            let mut log = shared.log();
            if log.is_overrun {
                return Err(io::Error::other("the disk is too slow for removals and purges"));
            }
            if log.waiting.is_empty() {
                if shared.is_closing() {
                    return Ok(());
                }
                let time = shared.closes_in().unwrap_or(IDLE).min(IDLE);
                log = shared.wait(log, time);
            }
            if !log.waiting.is_empty() {
                log = shared.gather(log, GATHER);
            }
            let records = log.take(WRITE);
            drop(log);
            if let Some(last) = records.last() {
                let end = last.header.end();
                self.write(records)?;
                shared.stats.writes.fetch_add(1, Ordering::Relaxed);
                shared.set_written(end);
            }
            shared.index.sweep();
            self.fit()?;
        }
    }

    /// Ends the log after an error.
    fn abandon(mut self) {
        let shared = self.shared;
        let mut log = shared.log();
        shared.is_ready.store(false, Ordering::SeqCst);
        log.close(CloseReason::Failed);
        drop(log);
        match self.clear() {
            // Nothing is left to which a change so far could apply.
            Ok(()) => shared.log().early = EarlyChanges::default(),
            Err(error) => tracing::warn!("response cache on disk: it cannot be emptied: {error}"),
        }
        self.count_size();
        self.leave();
    }

    /// Ends the log, so that the next process can continue with it.
    fn close(mut self) {
        let ended = match self.shared.is_discarded.load(Ordering::SeqCst) {
            true => self.clear(),
            false => self.flush().and_then(|()| self.seal()),
        };
        let state = State {
            seed: self.seed,
            boot: boot_id(),
            is_closed: true,
        };
        let result = ended.and_then(|()| self.write_small(|folder| folder.set_state(&state)));
        if let Err(error) = result {
            tracing::warn!("response cache on disk: the last responses and changes cannot be written: {error}");
        }
        self.leave();
    }

    /// Lets another process take the folder.
    fn leave(&self) {
        let mut log = self.shared.log();
        // Hashes of early changes match no key if the next process chooses another seed. If there are such hashes, all
        // early changes count as lost, so the log is emptied before this process uses it again.
        log.early.lose_if_hashed();
        self.shared.set_folder(None, 0);
        drop(log);
        self.folder.unlock();
    }
}
