//! Destination of log lines, owned by the log thread: the open file, the lines held for it, and its failures.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rocknet_config::model::Rotate;

use super::outage::{Health, Outage};
use super::output::{self, Output, OutputTarget};
use super::rotation;

/// Maximum bytes of lines held for one log while it cannot be written: about ten thousand lines, enough while a reader
/// restarts or logs are rotated.
pub(super) const HELD_MAX: usize = 1 << 20;

/// Time between attempts to write a failed log. A full disk is not freed sooner, and each attempt costs system calls.
const RETRY: Duration = Duration::from_secs(1);

/// Time between attempts to rotate after a failure. Each attempt delays the writing of lines, and costs several
/// renames.
const ROTATE_RETRY: Duration = Duration::from_secs(60);

/// Minimum age at which a log is rotated. With a shorter minimum, every check of the clock would rotate the log.
const AGE_MIN: Duration = Duration::from_secs(1);

/// Time after which a log that the configuration no longer names is closed, counted from its last line. Requests of the
/// old configuration usually end within this time; a later request opens the file again.
const CLOSE_AFTER: Duration = Duration::from_secs(60);

/// One log: its open file, the lines held for it, and its failures.
pub(super) struct Destination {
    target: OutputTarget,
    /// Open log; `None` while it is closed or cannot be opened.
    output: Option<Output>,
    /// Length of the open file in bytes. Used only for regular files, because others are not rotated.
    length: u64,
    /// Time at which the file was opened.
    opened: Instant,
    /// Age of the file when it was opened. The time since `opened` is added to it.
    age_when_opened: Duration,
    /// Earliest time of the next rotation after a failed one.
    rotate_not_before: Option<Instant>,
    /// Reason of a failed rotation that has not been reported.
    rotate_error: Option<String>,
    /// Lines held until they can be written, from the start of a line. The first `sent` bytes, which are part of one
    /// line, have already been written.
    held: Vec<u8>,
    sent: usize,
    /// Reason why lines are held; `None` if the last write succeeded.
    failure: Option<WriteFailure>,
    /// Outage that has not ended, or whose end has not been reported.
    outage: Option<Outage>,
    /// Number of lines that this log has dropped since the last `take_dropped`.
    dropped: u64,
    /// True if the current configuration names this log.
    in_use: bool,
    /// Time of the last `push`; before the first one, the time at which the log was added.
    last_line: Instant,
}

/// Reason why lines are held.
struct WriteFailure {
    reason: String,
    retry_at: Instant,
    /// True if the output is a pipe, socket or terminal that was full at the last write. This is reported only if lines
    /// are lost. The next successful write removes the whole [`WriteFailure`].
    reader_is_slow: bool,
}

/// Current time. It is passed as an argument, so that tests can choose it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) instant: Instant,
    pub(super) unix_ms: u64,
}

impl Destination {
    pub(super) fn new(target: OutputTarget, output: Option<Output>, now: Now) -> Destination {
        let mut destination = Destination {
            target,
            output: None,
            length: 0,
            opened: now.instant,
            age_when_opened: Duration::ZERO,
            rotate_not_before: None,
            rotate_error: None,
            held: Vec::new(),
            sent: 0,
            failure: None,
            outage: None,
            dropped: 0,
            in_use: true,
            last_line: now.instant,
        };
        if let Some(output) = output {
            destination.adopt(output, now);
        }
        destination
    }

    pub(super) fn set_in_use(&mut self, in_use: bool) {
        self.in_use = in_use;
    }

    /// Writes whole lines, whose number is `lines`. If the log cannot be written, holds them, or drops them if this log
    /// would hold more than [`HELD_MAX`] or `room` bytes. If some of the bytes were written, holds the rest regardless
    /// of these limits.
    pub(super) fn push(&mut self, bytes: &[u8], lines: u64, room: usize, rotate: &Rotate, now: Now) {
        self.last_line = now.instant;
        if bytes.is_empty() {
            return;
        }
        self.drain(rotate, now);
        let written = if self.held.is_empty() && self.may_try(now) {
            self.rotate_if_due(bytes.len(), rotate, now);
            self.write(bytes, now)
        } else {
            0
        };
        if written == bytes.len() {
            return;
        }
        if written > 0 || self.held.len() + bytes.len() <= HELD_MAX.min(room) {
            // A partly written line has to be finished, because otherwise the next line would be joined to it.
            let from = line_start(&bytes[..written]);
            self.held.extend_from_slice(&bytes[from..]);
            self.sent += written - from;
        } else {
            self.dropped += lines;
            let reason = self
                .failure
                .as_ref()
                .map_or(String::new(), |failure| failure.reason.clone());
            self.count_lost(lines, &reason, now);
        }
    }

    /// Writes as many of the held bytes as the log accepts.
    pub(super) fn drain(&mut self, rotate: &Rotate, now: Now) {
        if self.held.is_empty() || !self.may_try(now) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        if self.output.is_none() {
            // The file that is opened next does not contain the first part of the line.
            self.sent = 0;
        }
        // Rotate only between lines, so that a partly written line is finished in the same file.
        if self.sent == 0 {
            self.rotate_if_due(held.len(), rotate, now);
        }
        let from = self.sent;
        self.sent = from + self.write(&held[from..], now);
        if self.sent == held.len() {
            self.sent = 0;
        } else {
            let from = line_start(&held[..self.sent]);
            self.held = held;
            self.held.drain(..from);
            self.sent -= from;
        }
    }

    /// Counts lines that were lost before they reached this log, or because the log holds too many.
    pub(super) fn count_lost(&mut self, lines: u64, reason: &str, now: Now) {
        if lines > 0 {
            self.outage(reason, now).count_lost(lines, reason);
        }
    }

    /// Performs the work that is due: a retry, a rotation by age, or closing a log that is no longer named.
    pub(super) fn upkeep(&mut self, rotate: &Rotate, now: Now) {
        self.drain(rotate, now);
        if self.rotates_at(rotate).is_some_and(|at| at <= now.instant) {
            if self.length > 0 {
                self.rotate_if_due(0, rotate, now);
            } else {
                // An empty log is not rotated, and its age is counted from now.
                self.opened = now.instant;
                self.age_when_opened = Duration::ZERO;
            }
        }
        if self.closes_at().is_some_and(|at| at <= now.instant) {
            self.output = None;
        }
    }

    /// Returns the time of the next `upkeep`; `None` if none is needed.
    pub(super) fn due(&self, rotate: &Rotate) -> Option<Instant> {
        // A slow reader needs no retry, because the log thread waits until it is ready.
        let retry = match &self.failure {
            Some(failure) if !self.held.is_empty() && !failure.reader_is_slow => Some(failure.retry_at),
            _ => None,
        };
        let rotation = self
            .rotates_at(rotate)
            .map(|at| self.rotate_not_before.map_or(at, |not_before| at.max(not_before)));
        [retry, rotation, self.closes_at()].into_iter().flatten().min()
    }

    /// Replaces the open file by the file that now has its name, if that is a different file. Retries a failed log at
    /// once.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened; the old file then remains in use.
    pub(super) fn reopen(&mut self, rotate: &Rotate, now: Now) -> io::Result<()> {
        if let Some(failure) = &mut self.failure {
            failure.retry_at = now.instant;
        }
        let result = match (&self.target, &self.output) {
            (OutputTarget::File(path), Some(output)) if !output.is_at(path) => match Output::open(&self.target) {
                Ok(output) => {
                    self.adopt(output, now);
                    Ok(())
                }
                Err(error) if output::is_unread_pipe(&self.target, &error) => {
                    self.output = None;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            // A closed log is opened when its next line is written. A file that still has its name remains open.
            _ => Ok(()),
        };
        self.drain(rotate, now);
        result
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    pub(super) fn held_lines(&self) -> u64 {
        self.held.iter().filter(|byte| **byte == b'\n').count() as u64
    }

    /// Returns true if the last write failed, or if the reader was slow.
    pub(super) fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the descriptor to wait for, if a slow reader is the only problem.
    pub(super) fn slow_reader(&self) -> Option<BorrowedFd<'_>> {
        match (&self.failure, &self.output) {
            (Some(failure), Some(output)) if failure.reader_is_slow && !self.held.is_empty() => Some(output.as_fd()),
            _ => None,
        }
    }

    /// Returns the number of lines that this log has dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Returns true if a report is pending. Discards an outage that needs no report.
    pub(super) fn has_report(&mut self) -> bool {
        let health = self.health();
        self.outage.take_if(|outage| outage.is_void(health));
        self.rotate_error.is_some() || self.outage.as_ref().is_some_and(|outage| outage.has_report(health))
    }

    /// Returns the pending report, with `true` if it reports a failure or lost lines. `time` formats a Unix time in
    /// milliseconds.
    pub(super) fn take_report(&mut self, time: impl Fn(u64) -> String) -> Option<(bool, String)> {
        if !self.has_report() {
            return None;
        }
        if let Some(reason) = self.rotate_error.take() {
            return Some((
                true,
                format!("{}: cannot be rotated and keeps growing: {reason}", self.name()),
            ));
        }
        let health = self.health();
        let (is_bad, text) = self.outage.as_mut()?.take_report(health, time);
        if health == Health::Healthy {
            self.outage = None;
        }
        Some((is_bad, format!("{}: {text}", self.name())))
    }

    fn health(&self) -> Health {
        match &self.failure {
            None => Health::Healthy,
            Some(failure) if failure.reader_is_slow => Health::Slow,
            Some(_) => Health::Failing,
        }
    }

    pub(super) fn name(&self) -> String {
        match &self.target {
            OutputTarget::Stdout => "log to standard output".to_owned(),
            OutputTarget::Stderr => "log to standard error".to_owned(),
            OutputTarget::File(path) => format!("log {}", path.display()),
        }
    }

    /// Returns true if a write may be attempted now. After a failure, the retry has to be due; a slow reader may be
    /// tried at any time.
    fn may_try(&self, now: Now) -> bool {
        self.failure
            .as_ref()
            .is_none_or(|failure| failure.reader_is_slow || failure.retry_at <= now.instant)
    }

    /// Writes until all bytes are written or an error occurs. Returns the number of bytes written.
    fn write(&mut self, bytes: &[u8], now: Now) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let result = match &mut self.output {
                Some(output) => output.write(&bytes[done..]),
                None => Output::open(&self.target).map(|output| {
                    self.adopt(output, now);
                    0
                }),
            };
            match result {
                Ok(written) => {
                    done += written;
                    self.length += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // A named pipe is opened again for its next reader, which then receives the current line from its
                    // start.
                    if error.kind() == io::ErrorKind::BrokenPipe && matches!(self.target, OutputTarget::File(_)) {
                        self.output = None;
                    }
                    self.fail(&error, now);
                    return done;
                }
            }
        }
        self.failure = None;
        done
    }

    /// Records a failed write.
    fn fail(&mut self, error: &io::Error, now: Now) {
        let reason = output::reason(error);
        self.outage(&reason, now);
        let reader_is_slow = error.kind() == io::ErrorKind::WouldBlock;
        self.failure = Some(WriteFailure {
            reason,
            retry_at: now.instant + RETRY,
            reader_is_slow,
        });
    }

    /// Returns the current outage, or begins one.
    fn outage(&mut self, reason: &str, now: Now) -> &mut Outage {
        self.outage.get_or_insert_with(|| Outage::new(reason, now.unix_ms))
    }

    /// Replaces the open log by one that has just been opened.
    fn adopt(&mut self, output: Output, now: Now) {
        (self.length, self.age_when_opened) = if output.is_regular() {
            output.size_and_age()
        } else {
            (0, Duration::ZERO)
        };
        self.opened = now.instant;
        // A line that was partly written to the old file is written completely to the new one.
        self.sent = 0;
        self.output = Some(output);
    }

    /// Returns the time of the next rotation by age; `None` if the log is not rotated by age, or not at the moment.
    fn rotates_at(&self, rotate: &Rotate) -> Option<Instant> {
        let output = self.output.as_ref()?;
        let left = rotate.age?.max(AGE_MIN).saturating_sub(self.age_when_opened);
        // Only regular files are rotated. Held lines are written first, because the first one may be partly written.
        if output.is_regular() && self.held.is_empty() {
            self.opened.checked_add(left)
        } else {
            None
        }
    }

    /// Returns the time at which an open log that the configuration no longer names is closed.
    fn closes_at(&self) -> Option<Instant> {
        let idle = !self.in_use && self.output.is_some() && self.held.is_empty();
        idle.then(|| self.last_line + CLOSE_AFTER)
    }

    /// Rotates the log if it is too old, or too long for `more` further bytes. Called only between lines.
    fn rotate_if_due(&mut self, more: usize, rotate: &Rotate, now: Now) {
        let (Some(output), OutputTarget::File(path)) = (&self.output, &self.target) else {
            return;
        };
        let too_long = rotate.size.is_some_and(|size| self.length + more as u64 > size);
        let too_old = self.rotates_at(rotate).is_some_and(|at| at <= now.instant);
        let is_postponed = self.rotate_not_before.is_some_and(|at| now.instant < at);
        if !output.is_regular() || self.length == 0 || !(too_long || too_old) || is_postponed {
            return;
        }
        let result = free_name(output, path.clone(), rotate.keep).and_then(|()| Output::open(&self.target));
        match result {
            Ok(output) => {
                self.adopt(output, now);
                self.rotate_not_before = None;
                if let OutputTarget::File(path) = &self.target {
                    rotation::prune(&real(path.clone()), rotate.keep);
                }
            }
            Err(error) => {
                // The open file remains in use, even if it has been renamed, so that no line is lost.
                self.rotate_not_before = now.instant.checked_add(ROTATE_RETRY);
                self.rotate_error = Some(output::reason(&error));
            }
        }
    }
}

/// Renames the log, so that the name `path` is free. If `path` no longer names the open file, another program
/// (logrotate, or a second process with the same log) has already rotated the log. Rotating again would only discard an
/// old file.
fn free_name(output: &Output, path: PathBuf, keep: usize) -> io::Result<()> {
    if output.is_at(&path) {
        rotation::set_aside(&real(path), keep)
    } else {
        Ok(())
    }
}

/// Resolves symbolic links, so that the file is renamed and not the link.
fn real(path: PathBuf) -> PathBuf {
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// Returns the start of the line that contains the end of `bytes`.
fn line_start(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests;
