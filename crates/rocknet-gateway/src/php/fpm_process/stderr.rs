//! Standard error of a php-fpm process: logged line by line, with the last lines kept for the report of its end.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;

use super::super::lock;
use super::slow_log::SlowLog;
use crate::php::event::PhpEvent;

/// Number of the last lines on standard error that are reported when a process ends.
const STDERR_TAIL: usize = 6;
/// Maximum length of a line on standard error in bytes; a longer line is split. php-fpm itself writes at most 2048.
const MAX_LINE: u64 = 4096;
/// Mark of a php-fpm message of level notice.
const NOTICE: &str = "] NOTICE: ";
/// End of the message by which php-fpm reports that it accepts requests.
const READY: &str = "ready to handle connections";

/// The last lines of the running process on standard error, without notices.
#[derive(Clone, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    /// Forgets all lines, because a new process starts.
    pub fn clear(&self) {
        lock(&self.0).clear();
    }

    /// Returns the lines separated by semicolons, or an empty text before the first line.
    pub fn text(&self) -> String {
        let lines: Vec<String> = lock(&self.0).iter().cloned().collect();
        lines.join("; ")
    }

    /// Adds a line, and drops the oldest line if there are more than [`STDERR_TAIL`].
    fn push(&self, line: String) {
        let mut lines = lock(&self.0);
        if lines.len() == STDERR_TAIL {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// One run of the process of a pool. Events carry it.
#[derive(Clone, Copy)]
pub struct Run {
    /// Number of the pool.
    pub pool: u32,
    /// Number of starts of the process, including this one.
    pub number: u32,
}

/// Reads standard error of a process to the end, on a separate thread. Sends [`PhpEvent::Ready`] when php-fpm accepts
/// requests, and [`PhpEvent::StderrClosed`] at the end. `slow_log`: the log of slow requests, which has the name of the
/// pool.
pub fn read(stderr: PipeReader, run: Run, mut slow_log: SlowLog, tail: StderrTail, sender: Sender<PhpEvent>) {
    let read = move || {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        // True if the next piece continues a line of the log of slow requests, which may contain the query.
        let mut is_rest_of_slow = false;
        loop {
            line.clear();
            match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(read) if read > 0 => {}
                _ => break,
            }
            let text = String::from_utf8_lossy(line.trim_ascii()).into_owned();
            if is_rest_of_slow || slow_log.take(&text) {
                is_rest_of_slow = !line.ends_with(b"\n");
                continue;
            }
            log_line(slow_log.pool(), &text);
            if !text.contains(NOTICE) {
                tail.push(text);
            } else if text.ends_with(READY) {
                let _ = sender.send(PhpEvent::Ready(run.pool, run.number));
            }
        }
        slow_log.end_trace();
        let _ = sender.send(PhpEvent::StderrClosed(run.pool, run.number));
    };
    // Without the thread no output is read, and the end of the process is noticed at the next check.
    let _ = thread::Builder::new().name(format!("rn-php-{}", run.pool)).spawn(read);
}

/// Logs a line of php-fpm: notices, debug messages and empty lines at level debug, warnings at level warn, and all
/// other lines at level error.
fn log_line(pool: &str, line: &str) {
    let is = |word: &str| line.contains(word);
    if is(NOTICE) || is("] DEBUG: ") || line.is_empty() {
        tracing::debug!(php = pool, "{line}");
    } else if is("] WARNING: ") {
        tracing::warn!(php = pool, "{line}");
    } else {
        tracing::error!(php = pool, "{line}");
    }
}
