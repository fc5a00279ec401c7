//! Logging: one thread owns all log files, and workers pass formatted lines to it. No log ever blocks a worker.
//!
//! Access log lines go from an [`AccessWriter`] to the thread through a bounded channel. Error lines and commands go
//! through a separate inbox. Lines that cannot be written are held up to a limit, and counted as lost beyond it. The
//! error log reports the number of lost lines, with the start of the outage and the reason. Text chosen by a client is
//! escaped in every format (see `escape`).
#![forbid(unsafe_code)]

mod custom;
mod destination;
mod dev;
mod errors;
mod escape;
mod follow;
mod levels;
mod line;
mod number;
mod outage;
mod output;
mod record;
mod rotation;
mod shared;
mod sites;
mod stamp;
mod thread;
pub mod throttle;
mod writer;

#[cfg(test)]
mod tests;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use rocknet_config::model::{AccessFormat, Level, Log, LogTarget};
use tokio::sync::mpsc::Receiver;

pub use errors::{ErrorLog, LEVEL_VARIABLE, init_errors};
pub use follow::{FollowedLines, FollowedLog, MAX_FOLLOWERS};
pub use record::Record;
pub use writer::AccessWriter;

use output::{Output, OutputTarget};
use record::PlainFormat;
use shared::{Command, Shared, lock};
use thread::LogThread;
use writer::Chunk;

/// Capacity of the channel in buffers, whose bytes have a separate limit. The slots are small, because buffers are
/// allocated on demand.
const CHANNEL: usize = 1024;

/// Stack size of the log thread in bytes. The thread formats little and has no deep calls.
const STACK: usize = 256 * 1024;

/// Message in the channel to the log thread.
enum Message {
    Lines(Chunk),
    /// Wakes the thread, because the inbox is not empty.
    Wake,
}

/// Log for the access records of a site, with the format of its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkId {
    /// Number of the log in the table of the log thread.
    destination: u32,
    /// Number of the site, for programs that follow the log.
    site: u32,
    format: LineFormat,
}

/// Format of the lines of a sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFormat {
    Plain(PlainFormat),
    /// Number of a format of the operator.
    Custom(u32),
    /// Short line for a terminal.
    Dev {
        /// Adds colours.
        colour: bool,
    },
}

impl SinkId {
    /// Returns true if the lines have values that a [`Record`] does not have.
    pub fn needs_values(&self) -> bool {
        matches!(self.format, LineFormat::Custom(_))
    }
}

/// Returns true if lines to `target` have colours: it is a terminal, and the environment does not refuse them.
fn shows_colour(target: &LogTarget) -> bool {
    let is_terminal = match target {
        LogTarget::Stdout => io::stdout().is_terminal(),
        LogTarget::Stderr => io::stderr().is_terminal(),
        LogTarget::Off | LogTarget::File(_) => false,
    };
    is_terminal
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
}

/// Handle of the log thread.
#[derive(Clone)]
pub struct Logger {
    shared: Arc<Shared>,
    messages: SyncSender<Message>,
}

impl Logger {
    /// Opens the error log and starts the thread.
    ///
    /// # Errors
    ///
    /// Fails if the error log cannot be opened, or if the thread cannot be started.
    pub fn start(log: &Log) -> io::Result<Logger> {
        let (messages, receiver) = sync_channel(CHANNEL);
        // Reads the time zone once, because a sandboxed server may not find it later.
        let shared = Arc::new(Shared::new(TimeZone::system(), log.level));
        let logger = Logger {
            shared: Arc::clone(&shared),
            messages,
        };
        logger.set_errors(&log.errors)?;
        let thread = LogThread::new(receiver, shared, log.rotate.clone());
        std::thread::Builder::new()
            .name("rn-log".to_owned())
            .stack_size(STACK)
            .spawn(move || thread.run())?;
        Ok(logger)
    }

    /// Returns the sink for lines of the site with this name to `target`, or `None` if the log is off. A target is
    /// opened once, even if several sites use it, or several formats.
    ///
    /// # Errors
    ///
    /// Fails with the path of the file if it cannot be opened.
    pub fn sink(&self, target: &LogTarget, format: &AccessFormat, site: &str) -> io::Result<Option<SinkId>> {
        let Some(destination) = self.destination(target)? else {
            return Ok(None);
        };
        let site = lock(&self.shared.sites).number(site);
        let format = match format {
            AccessFormat::Common => LineFormat::Plain(PlainFormat::Common),
            AccessFormat::Combined => LineFormat::Plain(PlainFormat::Combined),
            AccessFormat::Json => LineFormat::Plain(PlainFormat::Json),
            AccessFormat::Dev => LineFormat::Dev {
                colour: shows_colour(target),
            },
            AccessFormat::Custom(text) => LineFormat::Custom(lock(&self.shared.formats).number(text)),
        };
        Ok(Some(SinkId {
            destination,
            site,
            format,
        }))
    }

    /// Creates the access log writer of a worker.
    pub fn writer(&self) -> AccessWriter {
        AccessWriter::new(Arc::clone(&self.shared), self.messages.clone())
    }

    /// Reopens the log files that other programs have renamed, so that each log is written to the file with its name.
    /// Returns before the files have been reopened.
    pub fn reopen(&self) {
        self.command(Command::Reopen);
    }

    /// Applies the error log, rotation and level of a new configuration, and removes the levels of modules. If
    /// `ROCKNET_LOG` has set the general level, restores that level instead of the one in `log`. The caller then
    /// opens the access logs by [`Logger::sink`]. A log that is not requested again is closed after some time without
    /// lines.
    ///
    /// # Errors
    ///
    /// Fails, without changes, if the error log cannot be opened.
    pub fn reconfigure(&self, log: &Log) -> io::Result<()> {
        self.set_errors(&log.errors)?;
        self.command(Command::Begin);
        self.command(Command::Rotate(log.rotate.clone()));
        if self.shared.level_is_fixed.load(Ordering::Relaxed) {
            self.set_level(self.shared.levels.configured());
        } else {
            self.set_level(log.level);
        }
        Ok(())
    }

    /// Waits, for at most `limit`, until all lines logged before are written, held for a slow reader or a failed log,
    /// or counted as lost. Returns false if the limit has passed.
    pub fn sync(&self, limit: Duration) -> bool {
        let (done, reply) = sync_channel(1);
        self.command(Command::Sync(done));
        reply.recv_timeout(limit).is_ok()
    }

    /// Writes all lines, waits for slow readers for at most `limit`, and stops the thread. Returns false if held lines
    /// could not be written, or if the thread does not reply in time; lines that were lost earlier do not count. All
    /// writers must be flushed before this call. Later access lines are counted as lost, and error lines go to standard
    /// error. A second call has no effect and returns true.
    pub fn flush_and_stop(&self, limit: Duration) -> bool {
        if self.shared.stopped.load(Ordering::Acquire) {
            return true;
        }
        throttle::report_all();
        let (done, reply) = sync_channel(1);
        let Some(deadline) = Instant::now().checked_add(limit) else {
            return false;
        };
        self.command(Command::Stop(deadline, done));
        let all_written = reply.recv_timeout(limit.saturating_add(STOP_GRACE)).unwrap_or(false);
        self.shared.stopped.store(true, Ordering::Release);
        all_written
    }

    /// Returns a queue that receives the new lines of a log, or of all logs if `only` is `None`. It begins with a batch
    /// of the recent lines of the error log, which is empty if only the access logs are followed. The queue ends when
    /// the logger stops, and after the first batch if too many queues exist. A slow reader loses lines, but delays
    /// none.
    pub fn follow(&self, only: Option<FollowedLog>) -> Receiver<FollowedLines> {
        let (follower, receiver) = follow::queue(only);
        if !self.shared.stopped.load(Ordering::Acquire) {
            self.command(Command::Follow(follower));
        }
        receiver
    }

    /// Returns the number of lines lost since the start, in all logs.
    pub fn drops(&self) -> u64 {
        self.shared.drops()
    }

    fn set_level(&self, level: Level) {
        self.shared.levels.reset(level);
        self.renew_interest();
    }

    /// Makes `tracing` query again which call sites are enabled, because it caches the results.
    fn renew_interest(&self) {
        if self.shared.is_global.load(Ordering::Relaxed) {
            tracing::callsite::rebuild_interest_cache();
        }
    }

    /// Opens the error log at `target`, and passes it to the log thread. Its lines have colours if it is a terminal.
    fn set_errors(&self, target: &LogTarget) -> io::Result<()> {
        let destination = self.destination(target)?;
        self.shared
            .errors_have_colour
            .store(shows_colour(target), Ordering::Relaxed);
        self.shared
            .has_error_log
            .store(destination.is_some(), Ordering::Relaxed);
        self.command(Command::Errors(destination));
        self.renew_interest();
        Ok(())
    }

    /// Returns the number of the destination for `target`, and opens the destination if it is new. Returns `None` if
    /// the log is off.
    fn destination(&self, target: &LogTarget) -> io::Result<Option<u32>> {
        let output_target = match target {
            LogTarget::Off => return Ok(None),
            LogTarget::Stdout => OutputTarget::Stdout,
            LogTarget::Stderr => OutputTarget::Stderr,
            LogTarget::File(path) => OutputTarget::File(std::path::absolute(path)?),
        };
        // The lock is held until the command is queued, because the thread numbers destinations in the order of
        // commands.
        let mut targets = lock(&self.shared.targets);
        if let Some(index) = targets.get(&output_target) {
            self.command(Command::Use(*index));
            return Ok(Some(*index));
        }
        let output = match Output::open(&output_target) {
            Ok(output) => Some(output),
            // A reader may open the pipe later.
            Err(error) if output::is_unread_pipe(&output_target, &error) => None,
            Err(error) => {
                let reason = output::reason(&error);
                return Err(match &output_target {
                    OutputTarget::File(path) => io::Error::new(error.kind(), format!("{}: {reason}", path.display())),
                    OutputTarget::Stdout | OutputTarget::Stderr => error,
                });
            }
        };
        let index = targets.len() as u32;
        targets.insert(output_target.clone(), index);
        self.command(Command::Add(output_target, output));
        Ok(Some(index))
    }

    fn command(&self, command: Command) {
        self.shared.push_command(command);
        self.wake();
    }

    fn push_error(&self, line: &[u8], site: Option<&str>) {
        if self.shared.push_error(line, site) {
            self.wake();
        }
    }

    /// Wakes the thread. An error is ignored: if the channel is full, the thread is awake, and checks the inbox before
    /// it sleeps.
    fn wake(&self) {
        let _ = self.messages.try_send(Message::Wake);
    }
}

/// Time that the thread may need after its deadline to reply.
const STOP_GRACE: Duration = Duration::from_millis(100);
