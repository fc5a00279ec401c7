//! Logs: one thread owns every log file, workers hand it what they have written, and no log ever makes a worker wait.
//!
//! Lines go from an [`AccessWriter`] to the thread through a bounded channel, error lines and commands through a mailbox
//! beside it. What cannot be written waits, within bounds, and past them it is counted; the error log tells how much was
//! lost, since when and why. Text a client chose is escaped wherever it is written (see `escape`).
#![forbid(unsafe_code)]

mod destination;
mod errors;
mod escape;
mod line;
mod number;
mod outage;
mod output;
mod record;
mod rotation;
mod shared;
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

pub use errors::{ErrorLog, init_errors};
pub use record::Record;
pub use writer::AccessWriter;

use output::{Output, OutputTarget};
use shared::{Command, Shared, lock};
use thread::LogThread;
use writer::Chunk;

/// Buffers on their way to the thread, whose bytes have a bound of their own. The slots are small, the buffers in them are made only when they are needed.
const CHANNEL: usize = 1024;

/// The thread formats little and calls nothing deep.
const STACK: usize = 256 * 1024;

/// What goes through the channel.
enum Message {
    Lines(Chunk),
    /// There is something in the inbox.
    Wake,
}

/// A log that records may go to, and the format they have there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkId {
    destination: u32,
    format: AccessFormat,
}

/// The handle on the logger thread.
#[derive(Clone)]
pub struct Logger {
    shared: Arc<Shared>,
    messages: SyncSender<Message>,
}

impl Logger {
    /// Opens the error log and starts the thread.
    pub fn start(log: &Log) -> io::Result<Logger> {
        let (messages, receiver) = sync_channel(CHANNEL);
        // Read here, once: a server that has confined itself may not find the time zone any more.
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

    /// Where records for `target` go; `None` when that is nowhere. The same target, in whatever format, is opened once.
    pub fn sink(&self, target: &LogTarget, format: AccessFormat) -> io::Result<Option<SinkId>> {
        let destination = self.destination(target)?;
        Ok(destination.map(|destination| SinkId { destination, format }))
    }

    /// A worker's own end of the access logs.
    pub fn writer(&self) -> AccessWriter {
        AccessWriter::new(Arc::clone(&self.shared), self.messages.clone())
    }

    /// Closes every file and opens it again by name, after a program outside has moved it. Returns before it is done.
    pub fn reopen(&self) {
        self.command(Command::Reopen);
    }

    /// Takes over level, error log and rotation of a new configuration, whose access logs are then asked for by `sink`.
    /// A log that is not asked for is closed when it has been silent for a while. Fails, changing nothing, if the error
    /// log cannot be opened.
    pub fn reconfigure(&self, log: &Log) -> io::Result<()> {
        self.set_errors(&log.errors)?;
        self.command(Command::Begin);
        self.command(Command::Rotate(log.rotate.clone()));
        if !self.shared.level_is_fixed.load(Ordering::Relaxed) {
            self.set_level(log.level);
        }
        Ok(())
    }

    /// Waits, `limit` at most, until all that was handed over before is written or known to wait for its reader.
    /// Says whether that was so.
    pub fn sync(&self, limit: Duration) -> bool {
        let (done, answer) = sync_channel(1);
        self.command(Command::Sync(done));
        answer.recv_timeout(limit).is_ok()
    }

    /// Writes what there is, gives slow readers until `limit`, and ends the thread. Says whether every line was written.
    /// Writers must have flushed before; lines that come later are counted as lost, errors go to standard error. A second
    /// call finds nothing to do.
    pub fn flush_and_stop(&self, limit: Duration) -> bool {
        if self.shared.stopped.load(Ordering::Acquire) {
            return true;
        }
        throttle::report_all();
        let (done, answer) = sync_channel(1);
        let Some(deadline) = Instant::now().checked_add(limit) else {
            return false;
        };
        self.command(Command::Stop(deadline, done));
        let all_written = answer.recv_timeout(limit.saturating_add(STOP_GRACE)).unwrap_or(false);
        self.shared.stopped.store(true, Ordering::Release);
        all_written
    }

    /// Lines lost since the start, in all logs.
    pub fn drops(&self) -> u64 {
        self.shared.drops()
    }

    fn set_level(&self, level: Level) {
        self.shared.set_level(level);
        self.renew_interest();
    }

    fn renew_interest(&self) {
        if self.shared.is_global.load(Ordering::Relaxed) {
            tracing::callsite::rebuild_interest_cache();
        }
    }

    fn set_errors(&self, target: &LogTarget) -> io::Result<()> {
        let destination = self.destination(target)?;
        let is_terminal = match target {
            LogTarget::Stdout => io::stdout().is_terminal(),
            LogTarget::Stderr => io::stderr().is_terminal(),
            LogTarget::Off | LogTarget::File(_) => false,
        };
        let wants_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|value| value != "dumb");
        self.shared
            .errors_have_colour
            .store(is_terminal && wants_colour, Ordering::Relaxed);
        self.shared
            .has_error_log
            .store(destination.is_some(), Ordering::Relaxed);
        self.command(Command::Errors(destination));
        self.renew_interest();
        Ok(())
    }

    fn destination(&self, target: &LogTarget) -> io::Result<Option<u32>> {
        let output_target = match target {
            LogTarget::Off => return Ok(None),
            LogTarget::Stdout => OutputTarget::Stdout,
            LogTarget::Stderr => OutputTarget::Stderr,
            LogTarget::File(path) => OutputTarget::File(std::path::absolute(path)?),
        };
        // Held while the command is put: the thread numbers destinations in the order of the commands.
        let mut targets = lock(&self.shared.targets);
        if let Some(index) = targets.get(&output_target) {
            self.command(Command::Use(*index));
            return Ok(Some(*index));
        }
        let output = match Output::open(&output_target) {
            Ok(output) => Some(output),
            // A reader may come later.
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

    fn push_error(&self, line: &[u8]) {
        if self.shared.push_error(line) {
            self.wake();
        }
    }

    /// A full channel needs none: the thread is not asleep, and looks at the inbox before it is.
    fn wake(&self) {
        let _ = self.messages.try_send(Message::Wake);
    }
}

/// What the thread may need past its deadline to answer.
const STOP_GRACE: Duration = Duration::from_millis(100);
