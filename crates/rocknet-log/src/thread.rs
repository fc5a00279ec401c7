//! Log thread: the only thread that reopens and rotates log files, and that waits for their readers.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use rocknet_config::model::{Level, Rotate};

use super::Message;
use super::destination::{Destination, Now};
use super::follow::{FollowedLog, Followers};
use super::line;
use super::output;
use super::shared::{Command, Inbox, Shared, lock, unix_ms};
use super::sites::NamedRun;
use super::stamp;
use super::throttle;
use super::writer::Chunk;

/// Maximum bytes held for all logs together, so that thousands of logs on a full disk do not exhaust the memory.
const HELD_MAX: usize = 16 << 20;

/// Interval between reports of lost lines in the error log: often enough to be noticed, too rare to fill a disk.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum and maximum time to wait for a slow reader before the channel is checked again. The time doubles while
/// nothing is written.
const READER_WAIT_MIN: Duration = Duration::from_millis(1);
const READER_WAIT_MAX: Duration = Duration::from_millis(100);

/// Maximum number of slow readers to wait for at the same time. After the wait, the thread tries to write to all slow
/// readers.
const READERS_MAX: usize = 64;

pub(super) struct LogThread {
    messages: Receiver<Message>,
    shared: Arc<Shared>,
    destinations: Vec<Destination>,
    /// Index of the error log in `destinations`; `None` if it is off.
    errors: Option<usize>,
    rotate: Rotate,
    /// Bytes held for all destinations.
    held: usize,
    /// Indices in `destinations` of the logs whose reader was slow at the last attempt.
    slow: Vec<usize>,
    /// Maximum duration of the next wait for a slow reader.
    reader_wait: Duration,
    /// Time of the next upkeep, if any.
    due: Option<Instant>,
    /// True if a destination has a report that was not taken.
    has_report: bool,
    /// Earliest time of the next report.
    report_not_before: Option<Instant>,
    /// Channels for the replies to `Command::Sync`. The replies are sent once the channel and the inbox are empty.
    syncing: Vec<SyncSender<()>>,
    followers: Followers,
}

impl LogThread {
    pub(super) fn new(messages: Receiver<Message>, shared: Arc<Shared>, rotate: Rotate) -> LogThread {
        LogThread {
            messages,
            shared,
            destinations: Vec::new(),
            errors: None,
            rotate,
            held: 0,
            slow: Vec::new(),
            reader_wait: READER_WAIT_MIN,
            due: None,
            has_report: false,
            report_not_before: None,
            syncing: Vec::new(),
            followers: Followers::default(),
        }
    }

    /// Runs until `Command::Stop`, or until all handles and writers are dropped.
    pub(super) fn run(mut self) {
        loop {
            let message = self.next_message();
            // Commands are processed first, because the lines may be for a destination that a command adds.
            let mut stop = None;
            if self.shared.is_inbox_filled() {
                stop = self.process_inbox();
            }
            match message {
                Ok(Message::Lines(chunk)) => self.write_chunk(chunk),
                Ok(Message::Wake) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some((deadline, done)) = stop {
                let all_written = self.finish(deadline);
                // Replies after the channel is closed, so that lines sent after the reply are counted as lost.
                drop(self);
                let _ = done.try_send(all_written);
                return;
            }
            self.upkeep(now());
            throttle::report();
        }
    }

    /// Waits for the next message, or until other work is due. Returns `Wake` if the inbox is filled, or after a wait
    /// for slow readers.
    fn next_message(&mut self) -> Result<Message, RecvTimeoutError> {
        match self.messages.try_recv() {
            Ok(message) => return Ok(message),
            Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {}
        }
        if self.shared.is_inbox_filled() {
            // The inbox was filled while the channel was full, so the channel contains no message for it.
            return Ok(Message::Wake);
        }
        for done in self.syncing.drain(..) {
            let _ = done.try_send(());
        }
        if !self.slow.is_empty() {
            self.wait_for_readers(READER_WAIT_MAX);
            return Ok(Message::Wake);
        }
        let upkeep = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        let report = throttle::due_in_ms().map(Duration::from_millis);
        match upkeep.into_iter().chain(report).min() {
            None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(wait) => self.messages.recv_timeout(wait),
        }
    }

    /// Waits for one of the slow readers, for at most `limit`, and writes the lines that they accept.
    fn wait_for_readers(&mut self, limit: Duration) {
        let readers: Vec<BorrowedFd<'_>> = self
            .slow
            .iter()
            .filter_map(|index| self.destinations[*index].slow_reader())
            .take(READERS_MAX)
            .collect();
        if readers.is_empty() {
            // Everything was written in the meantime, together with later lines.
            self.slow.clear();
            return;
        }
        let one_is_ready = output::wait_writable(&readers, self.reader_wait.min(limit)).is_ok();
        self.reader_wait = if one_is_ready {
            READER_WAIT_MIN
        } else {
            (self.reader_wait * 2).min(READER_WAIT_MAX)
        };
        let now = now();
        for index in std::mem::take(&mut self.slow) {
            self.change(index, |destination, rotate, _| destination.drain(rotate, now));
        }
    }

    /// Changes a destination and updates the totals and timers that depend on it. The last argument of `change` is the
    /// number of bytes that the destination may hold without exceeding the limit for all destinations.
    fn change<T>(&mut self, index: usize, change: impl FnOnce(&mut Destination, &Rotate, usize) -> T) -> Option<T> {
        let destination = self.destinations.get_mut(index)?;
        let held = destination.held_bytes();
        let room = HELD_MAX.saturating_sub(self.held - held);
        let result = change(destination, &self.rotate, room);
        self.held = self.held - held + destination.held_bytes();
        self.shared.count_drops(destination.take_dropped());
        self.has_report |= destination.has_report();
        self.due = earlier(self.due, destination.due(&self.rotate));
        if destination.slow_reader().is_some() && !self.slow.contains(&index) {
            self.slow.push(index);
        }
        Some(result)
    }

    /// Writes the lines of a chunk, and returns its buffer to the writer.
    fn write_chunk(&mut self, chunk: Chunk) {
        let Chunk {
            destination,
            mut buffer,
            lines,
            lost,
            home,
        } = chunk;
        self.shared.lines_budget.release(buffer.bytes.len() as u64);
        if self.followers.is_followed(FollowedLog::Access) {
            let runs = lock(&self.shared.sites).resolve(&buffer.runs);
            self.followers.push(FollowedLog::Access, &buffer.bytes, &runs);
        }
        let now = now();
        self.change(destination as usize, |destination, rotate, room| {
            destination.count_lost(lost, "the log thread did not keep up", now);
            destination.push(&buffer.bytes, lines, room, rotate, now);
        });
        if buffer.recycle() {
            // Fails if the writer has enough buffers or no longer exists.
            let _ = home.try_send(buffer);
        }
    }

    /// Processes the inbox. Returns the deadline and the reply channel of a request to stop, if there is one.
    fn process_inbox(&mut self) -> Option<(Instant, SyncSender<bool>)> {
        let Inbox {
            commands,
            errors,
            error_sites,
            error_lines,
            errors_lost,
        } = self.shared.take_inbox();
        let now = now();
        let mut stop = None;
        let mut new_followers = Vec::new();
        for command in commands {
            match command {
                Command::Add(target, output) => {
                    self.destinations.push(Destination::new(target, output, now));
                    // Changes nothing, but registers the time of the next upkeep.
                    self.change(self.destinations.len() - 1, |_, _, _| ());
                }
                Command::Use(index) => {
                    self.change(index as usize, |destination, _, _| destination.set_in_use(true));
                }
                Command::Begin => {
                    for index in 0..self.destinations.len() {
                        let is_error_log = self.errors == Some(index);
                        self.change(index, |destination, _, _| destination.set_in_use(is_error_log));
                    }
                }
                Command::Errors(index) => self.errors = index.map(|index| index as usize),
                Command::Rotate(rotate) => {
                    self.rotate = rotate;
                    // The next upkeep applies the settings and computes the due times again.
                    self.due = Some(now.instant);
                }
                Command::Reopen => self.reopen(now),
                Command::Follow(follower) => new_followers.push(follower),
                Command::Sync(done) => self.syncing.push(done),
                Command::Stop(deadline, done) => stop = Some((deadline, done)),
            }
        }
        if let Some(index) = self.errors
            && error_lines + errors_lost > 0
        {
            self.followers.push(FollowedLog::Error, &errors, &error_sites);
            self.change(index, |destination, rotate, room| {
                destination.push(&errors, error_lines, room, rotate, now);
                destination.count_lost(
                    errors_lost,
                    "errors were logged faster than the log thread writes them",
                    now,
                );
            });
        }
        // The recent lines of a new follower include the lines that were logged before it was added.
        for follower in new_followers {
            self.followers.add(follower);
        }
        stop
    }

    fn reopen(&mut self, now: Now) {
        let mut failed = None;
        let mut more = 0;
        for index in 0..self.destinations.len() {
            if let Some(Err(error)) = self.change(index, |destination, rotate, _| destination.reopen(rotate, now)) {
                match failed {
                    None => failed = Some((index, output::reason(&error))),
                    Some(_) => more += 1,
                }
            }
        }
        if let Some((index, reason)) = failed {
            let name = self.destinations[index].name();
            self.log_own_line(
                Level::Error,
                &format!(
                    "{name}: cannot be reopened, the old file stays in use: {reason}{}",
                    others(more)
                ),
                now,
            );
        }
    }

    /// Performs the work that is due, and writes pending reports.
    fn upkeep(&mut self, now: Now) {
        if self.due.is_some_and(|due| due <= now.instant) {
            self.due = None;
            for index in 0..self.destinations.len() {
                self.change(index, |destination, rotate, _| destination.upkeep(rotate, now));
            }
        }
        if !self.has_report {
            return;
        }
        match self.report_not_before {
            Some(not_before) if now.instant < not_before => self.due = earlier(self.due, Some(not_before)),
            _ => self.log_reports(now),
        }
    }

    /// Logs one line for all pending reports: the text of the first one, and the number of further logs.
    fn log_reports(&mut self, now: Now) {
        if self.errors.is_some_and(|index| self.destinations[index].is_failing()) {
            // The report itself would be lost and counted, which would cause another report, without end. The outages
            // are reported after the error log has recovered.
            return;
        }
        self.report_not_before = now.instant.checked_add(REPORT_INTERVAL);
        let zone = &self.shared.zone;
        let time = |unix_ms| String::from_utf8_lossy(&stamp::rfc3339_millis(zone, unix_ms)).into_owned();
        let mut reports: Vec<(bool, String)> = self
            .destinations
            .iter_mut()
            .filter_map(|destination| destination.take_report(time))
            .collect();
        // Each destination returns one report at a time, so more may be pending.
        self.has_report = self.destinations.iter_mut().any(Destination::has_report);
        // Failures and lost lines come first. Otherwise the logs keep the order in which they were added.
        reports.sort_by_key(|(is_bad, _)| !is_bad);
        if let Some((is_bad, text)) = reports.first() {
            let level = if *is_bad { Level::Error } else { Level::Info };
            let text = format!("{text}{}", others(reports.len() - 1));
            self.log_own_line(level, &text, now);
        }
    }

    /// Writes a line of the log thread itself to the error log.
    fn log_own_line(&mut self, level: Level, message: &str, now: Now) {
        if let Some(index) = self.errors
            && self.shared.is_enabled(level, module_path!())
        {
            let colour = self.shared.errors_have_colour.load(Ordering::Relaxed);
            let mut bytes = Vec::new();
            line::render(&mut bytes, &self.shared.zone, now.unix_ms, colour, level, &message, &[]);
            let run = NamedRun {
                site: None,
                end: bytes.len(),
            };
            self.followers.push(FollowedLog::Error, &bytes, &[run]);
            self.change(index, |destination, rotate, room| {
                destination.push(&bytes, 1, room, rotate, now);
            });
        }
    }

    /// Writes the lines that remain in the channel, and waits for slow readers until `deadline`. Returns whether
    /// everything was written.
    pub(super) fn finish(&mut self, deadline: Instant) -> bool {
        while let Ok(message) = self.messages.try_recv() {
            // A reload may have added the destination of the lines since the stop.
            if self.shared.is_inbox_filled() {
                self.process_inbox();
            }
            if let Message::Lines(chunk) = message {
                self.write_chunk(chunk);
            }
        }
        self.process_inbox();
        // Write pending reports now, because the thread is about to end.
        self.report_not_before = None;
        while !self.slow.is_empty() && Instant::now() < deadline {
            self.wait_for_readers(deadline.saturating_duration_since(Instant::now()));
        }
        self.upkeep(now());
        let held: u64 = self.destinations.iter().map(Destination::held_lines).sum();
        self.shared.count_drops(held);
        for done in self.syncing.drain(..) {
            let _ = done.try_send(());
        }
        held == 0
    }
}

fn now() -> Now {
    Now {
        instant: Instant::now(),
        unix_ms: unix_ms(),
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

/// Returns the end of a message about one log that also applies to `count` others.
fn others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " (and 1 more log)".to_owned(),
        _ => format!(" (and {count} more logs)"),
    }
}
