//! Log throttle: permits one line, or a given number, per second and cause, and counts the lines left out.
//!
//! A cause is a kind of failure at a site, with the script, upstream or limit concerned. Clients choose none of these,
//! so a client can neither fill the table nor displace other causes. The log thread reports the lines left out when the
//! second is over.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use tracing::Level;
use tracing::level_filters::LevelFilter;

use rocknet_io::uptime::uptime_ms;

/// Length of a window in milliseconds. Lines beyond the permitted number in a window are only counted.
const WINDOW_MS: u64 = 1_000;
/// Maximum number of causes with an entry. Further causes share one entry, so that the table remains below 1 MiB.
const MAX_CAUSES: usize = 1_024;
/// Maximum length in bytes of a site or subject that is stored for the report.
const MAX_LABEL: usize = 256;

/// Cause of a log line; equal values are the same cause.
#[derive(Debug, Clone, Copy)]
pub struct Cause<'c> {
    /// Level of the line and of the report.
    pub level: Level,
    /// Kind of failure, as the report names it.
    pub what: &'static str,
    /// Name of the site.
    pub site: &'c str,
    /// The script, upstream or limit; never a value sent by a client.
    pub subject: &'c str,
}

impl Cause<'_> {
    /// Returns whether a line may be logged now. If not, counts it as left out, unless its level is off.
    pub fn may_be_logged(&self) -> bool {
        self.level <= LevelFilter::current() && lock().admit(self, 1, uptime_ms())
    }

    /// Like [`Cause::may_be_logged`], for causes that may log `burst` lines per second.
    pub fn may_be_logged_in_burst(&self, burst: u32) -> bool {
        self.level <= LevelFilter::current() && lock().admit(self, burst, uptime_ms())
    }
}

/// Time of the next report in milliseconds of uptime; [`NEVER`] if none is pending.
static NEXT: AtomicU64 = AtomicU64::new(NEVER);
const NEVER: u64 = u64::MAX;

/// Returns the milliseconds until [`report`] has something to do; `None` if nothing was logged recently.
pub(super) fn due_in_ms() -> Option<u64> {
    let next = NEXT.load(Ordering::Relaxed);
    (next != NEVER).then(|| next.saturating_sub(uptime_ms()))
}

/// Logs the numbers of lines left out in windows that have ended.
pub(super) fn report() {
    if due_in_ms() == Some(0) {
        report_at(uptime_ms());
    }
}

/// Logs the numbers of all lines left out, before the log ends.
pub(super) fn report_all() {
    // At this time, all windows have ended.
    report_at(NEVER);
}

/// Logs the numbers of lines left out in windows that have ended at `now_ms`, in milliseconds of uptime.
fn report_at(now_ms: u64) {
    let ended = lock().take_ended(now_ms);
    for (level, text, site, subject) in ended {
        match level {
            Level::ERROR => tracing::error!(site = %site, of = %subject, "{text}"),
            Level::WARN => tracing::warn!(site = %site, of = %subject, "{text}"),
            Level::INFO => tracing::info!(site = %site, of = %subject, "{text}"),
            _ => tracing::debug!(site = %site, of = %subject, "{text}"),
        }
    }
}

/// Causes whose windows have not been reported yet, by the hash of the cause.
#[derive(Default)]
struct Table {
    hasher: RandomState,
    entries: HashMap<u64, Entry, RandomState>,
}

/// Cause with its window.
struct Entry {
    level: Level,
    what: &'static str,
    site: Box<str>,
    subject: Box<str>,
    /// Start of the window in milliseconds of uptime.
    since_ms: u64,
    /// Number of lines of the window that were logged.
    logged: u32,
    /// Number of lines of the window that were only counted.
    left_out: u64,
}

/// A line of the report: level, text, site and subject.
type Line = (Level, String, Box<str>, Box<str>);

/// Table of the process, in which all threads count; `None` before the first line.
static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// Locked table. Its methods keep [`NEXT`] up to date.
struct Locked(MutexGuard<'static, Option<Table>>);

fn lock() -> Locked {
    Locked(TABLE.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Locked {
    fn admit(&mut self, cause: &Cause<'_>, burst: u32, now_ms: u64) -> bool {
        let table = self.0.get_or_insert_with(Table::default);
        let admitted = table.admit(cause, burst, now_ms);
        NEXT.fetch_min(now_ms.saturating_add(WINDOW_MS), Ordering::Relaxed);
        admitted
    }

    fn take_ended(&mut self, now_ms: u64) -> Vec<Line> {
        let Some(table) = &mut *self.0 else { return Vec::new() };
        let ended = table.take_ended(now_ms);
        let next = table.entries.values().map(|entry| entry.since_ms).min();
        NEXT.store(
            next.map_or(NEVER, |since| since.saturating_add(WINDOW_MS)),
            Ordering::Relaxed,
        );
        ended
    }
}

impl Table {
    /// Returns whether a line of the cause may be logged, and counts the line as logged or left out.
    fn admit(&mut self, cause: &Cause<'_>, burst: u32, now_ms: u64) -> bool {
        let mut key = self.hasher.hash_one((cause.what, cause.site, cause.subject));
        let mut labels = (cut(cause.site), cut(cause.subject));
        let mut what = cause.what;
        if self.entries.len() >= MAX_CAUSES && !self.entries.contains_key(&key) {
            (key, what, labels) = (OTHERS, "other failures", ("", ""));
        }
        let entry = self.entries.entry(key).or_insert_with(|| Entry {
            level: cause.level,
            what,
            site: labels.0.into(),
            subject: labels.1.into(),
            since_ms: now_ms,
            logged: 0,
            left_out: 0,
        });
        // A window in which no line was left out restarts after its end. A window in which lines were left out
        // continues until they are reported, so that no count is lost.
        if now_ms.saturating_sub(entry.since_ms) >= WINDOW_MS && entry.left_out == 0 {
            (entry.since_ms, entry.logged) = (now_ms, 0);
        }
        if entry.logged < burst {
            entry.logged += 1;
            return true;
        }
        entry.left_out += 1;
        false
    }

    /// Removes the entries whose window has ended, and returns their reports.
    fn take_ended(&mut self, now_ms: u64) -> Vec<Line> {
        let has_ended = |entry: &Entry| now_ms.saturating_sub(entry.since_ms) >= WINDOW_MS;
        let ended = self.entries.extract_if(|_, entry| has_ended(entry));
        ended
            .filter(|(_, entry)| entry.left_out > 0)
            .map(|(_, entry)| {
                let text = format!("{}: {} more like this in the last second", entry.what, entry.left_out);
                (entry.level, text, entry.site, entry.subject)
            })
            .collect()
    }
}

/// Key of all causes that have no entry of their own.
const OTHERS: u64 = 0;

/// Cuts a label to at most [`MAX_LABEL`] bytes, at a character boundary.
fn cut(label: &str) -> &str {
    let mut end = label.len().min(MAX_LABEL);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    &label[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause<'c>(site: &'c str, subject: &'c str) -> Cause<'c> {
        Cause {
            level: Level::ERROR,
            what: "no answer",
            site,
            subject,
        }
    }

    #[test]
    fn each_cause_logs_a_line_a_second_and_counts_the_rest() {
        let mut table = Table::default();
        // Time in milliseconds, site and subject of a line, and whether the line may be logged.
        for (at, site, subject, admitted) in [
            (0, "a", "/x", true),
            (0, "a", "/y", true),
            (0, "b", "/x", true),
            (1, "a", "/x", false),
            (999, "a", "/x", false),
            (999, "b", "/x", false),
        ] {
            assert_eq!(
                table.admit(&cause(site, subject), 1, at),
                admitted,
                "{at} {site} {subject}"
            );
        }
        assert_eq!(table.take_ended(999).len(), 0);
        let mut lines = table.take_ended(1_000);
        lines.sort_by(|a, b| a.2.cmp(&b.2));
        let shown: Vec<_> = lines
            .iter()
            .map(|(_, text, site, _)| (&**site, text.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", "no answer: 2 more like this in the last second"),
                ("b", "no answer: 1 more like this in the last second"),
            ]
        );
        assert!(table.entries.is_empty() && table.admit(&cause("a", "/x"), 1, 1_000));
    }

    #[test]
    fn an_unreported_window_loses_no_count() {
        let mut table = Table::default();
        assert!(table.admit(&cause("a", ""), 1, 0));
        assert!(!table.admit(&cause("a", ""), 1, 10));
        assert!(!table.admit(&cause("a", ""), 1, 5_000));
        assert!(table.take_ended(5_000)[0].1.contains(": 2 more"));
        assert!(table.admit(&cause("a", ""), 1, 5_001));
        assert!(
            table.admit(&cause("a", ""), 1, 6_001),
            "nothing was left out in the meantime"
        );
    }

    #[test]
    fn bursts_are_counted_by_line() {
        let mut table = Table::default();
        let admitted = (0..5).filter(|_| table.admit(&cause("a", ""), 3, 0)).count();
        assert_eq!((admitted, table.entries.len()), (3, 1));
    }

    #[test]
    fn the_table_is_bounded_in_entries_and_bytes() {
        let mut table = Table::default();
        let long = "ü".repeat(MAX_LABEL);
        for number in 0..10 * MAX_CAUSES {
            table.admit(&cause(&long, &format!("{number}{long}")), 1, 0);
        }
        assert_eq!(table.entries.len(), MAX_CAUSES + 1);
        let labels = table
            .entries
            .values()
            .map(|entry| entry.site.len() + entry.subject.len());
        // Twice the size of an entry, because up to half of the hash table may be empty.
        let entry = size_of::<(u64, Entry)>() * 2;
        assert!(labels.sum::<usize>() + (MAX_CAUSES + 1) * entry < 1024 * 1024);
        let others = table.take_ended(1_000);
        // Of the 9 * 1,024 causes without an entry of their own, the first logged its line.
        assert!(
            others.len() == 1 && others[0].1.starts_with("other failures: 9215 more"),
            "{others:?}"
        );
    }
}
