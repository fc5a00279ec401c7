//! State shared by the handles and the log thread: the inbox, the number of lost lines, and the levels.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use rocknet_config::model::{Level, Rotate};

use super::custom::CustomFormats;
use super::follow::NewFollower;
use super::levels::Levels;
use super::output::{Output, OutputTarget};
use super::sites::{NamedRun, SiteNames};
use rocknet_io::byte_budget::ByteBudget;

/// Maximum bytes of access log lines in the channel: enough for a disk that stalls for more than a second, at a hundred
/// thousand requests per second. The channel itself limits only the number of buffers (`CHANNEL` in `lib.rs`), and a
/// client can make the lines in a buffer long.
const LINES_MAX: u64 = 32 << 20;

/// Maximum bytes of error log lines in the inbox; further lines are counted as lost. Only the debug level on a busy
/// server reaches it.
const ERRORS_MAX: usize = 512 * 1024;

pub(super) struct Shared {
    pub(super) zone: TimeZone,
    /// Set after something was put into the inbox, so that the thread checks one atomic per message instead of a lock.
    inbox_is_filled: AtomicBool,
    inbox: Mutex<Inbox>,
    /// Index of each log in the table of the thread, by name. Accessed only by changes of the configuration.
    pub(super) targets: Mutex<HashMap<OutputTarget, u32>>,
    /// Names of the sites with an access log. Accessed by changes of the configuration, and by the log thread while
    /// access logs are followed.
    pub(super) sites: Mutex<SiteNames>,
    /// Formats of lines that operators have written. Accessed by changes of the configuration, and by a worker that
    /// needs a new format.
    pub(super) formats: Mutex<CustomFormats>,
    /// Budget of the lines in the channel.
    pub(super) lines_budget: ByteBudget,
    /// Number of lines lost since the start, in all logs.
    drops: AtomicU64,
    pub(super) levels: Levels,
    /// True if ROCKNET_LOG has set the level; a reload then keeps it.
    pub(super) level_is_fixed: AtomicBool,
    /// Set once this logger is the global `tracing` subscriber. `tracing` caches which call sites are enabled, so each
    /// change of the level then has to renew this cache.
    pub(super) is_global: AtomicBool,
    /// False if the error log is off.
    pub(super) has_error_log: AtomicBool,
    pub(super) errors_have_colour: AtomicBool,
    /// True once the log thread has been stopped.
    pub(super) stopped: AtomicBool,
}

/// Messages that bypass the channel: rare commands that must not be lost when the channel is full, and error lines,
/// which are collected for one write.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) commands: Vec<Command>,
    /// Lines of the error log, each with its newline.
    pub(super) errors: Vec<u8>,
    /// Sites that the lines in `errors` name.
    pub(super) error_sites: Vec<NamedRun>,
    /// Number of lines in `errors`.
    pub(super) error_lines: u64,
    /// Number of lines that did not fit into `errors`.
    pub(super) errors_lost: u64,
}

pub(super) enum Command {
    /// Adds a log; `None` if it is a pipe without a reader, which is opened later.
    Add(OutputTarget, Option<Output>),
    /// The current configuration names this log.
    Use(u32),
    /// A new configuration begins. Its error log has already been selected by `Errors`. All other logs are unused until
    /// `Use` or `Add` follows for them.
    Begin,
    /// Selects the error log; `None` if it is off.
    Errors(Option<u32>),
    /// Replaces the settings of the rotation.
    Rotate(Rotate),
    /// Reopens the log files that other programs have renamed.
    Reopen,
    /// Sends lines to this follower as well.
    Follow(NewFollower),
    /// Sends a reply once all lines sent before are written, held, or counted as lost. Lines are held in memory while
    /// their log cannot be written; the reply does not wait for that to change.
    Sync(SyncSender<()>),
    /// Stops the thread by the given time, and sends true if every line was written.
    Stop(Instant, SyncSender<bool>),
}

impl Shared {
    pub(super) fn new(zone: TimeZone, level: Level) -> Shared {
        Shared {
            zone,
            inbox_is_filled: AtomicBool::new(false),
            inbox: Mutex::default(),
            targets: Mutex::default(),
            sites: Mutex::default(),
            formats: Mutex::default(),
            lines_budget: ByteBudget::new(LINES_MAX),
            drops: AtomicU64::new(0),
            levels: Levels::new(level),
            level_is_fixed: AtomicBool::new(false),
            is_global: AtomicBool::new(false),
            has_error_log: AtomicBool::new(false),
            errors_have_colour: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        }
    }

    pub(super) fn push_command(&self, command: Command) {
        lock(&self.inbox).commands.push(command);
        self.inbox_is_filled.store(true, Ordering::Release);
    }

    /// Adds an error line. `site`: the site that it names. Returns true if the thread has to be woken; false if an
    /// earlier message has already woken it.
    pub(super) fn push_error(&self, line: &[u8], site: Option<&str>) -> bool {
        let mut inbox = lock(&self.inbox);
        if inbox.errors.len() + line.len() > ERRORS_MAX {
            inbox.errors_lost += 1;
            self.count_drops(1);
        } else {
            inbox.errors.extend_from_slice(line);
            inbox.error_lines += 1;
            let end = inbox.errors.len();
            match inbox.error_sites.last_mut() {
                Some(last) if last.site.as_deref() == site => last.end = end,
                _ => inbox.error_sites.push(NamedRun {
                    site: site.map(Into::into),
                    end,
                }),
            }
        }
        drop(inbox);
        !self.inbox_is_filled.swap(true, Ordering::AcqRel)
    }

    /// Returns true if the inbox has received anything since it was last emptied.
    pub(super) fn is_inbox_filled(&self) -> bool {
        self.inbox_is_filled.load(Ordering::Acquire)
    }

    /// Empties the inbox. Clears the flag first, so that a message added meanwhile sets it again.
    pub(super) fn take_inbox(&self) -> Inbox {
        self.inbox_is_filled.store(false, Ordering::Release);
        std::mem::take(&mut *lock(&self.inbox))
    }

    pub(super) fn count_drops(&self, lines: u64) {
        self.drops.fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn drops(&self) -> u64 {
        self.drops.load(Ordering::Relaxed)
    }

    /// Returns true if messages of a module with this level are written.
    pub(super) fn is_enabled(&self, level: Level, module: &str) -> bool {
        self.levels.admits(level, module) && self.has_error_log.load(Ordering::Relaxed)
    }
}

/// Locks a mutex, even if a thread has panicked while it held the lock. The data is consistent in this case too: code
/// that holds such a lock can panic only before its first change.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the milliseconds since 1970; 0 if the clock shows an earlier time.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
