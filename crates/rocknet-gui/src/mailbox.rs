//! Reports on their way from the worker to the window. Their number is bounded, because the window may take no reports
//! for a while, such as while its process is stopped.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rocknet_control::logs::LogEvent;

use crate::job::{Poll, Report};

/// Maximum number of log lines that wait. The window keeps no more either.
const MAX_LINES: usize = 2_000;

/// Maximum size of the waiting log lines in bytes: two of the largest batches of the worker.
const MAX_BYTES: usize = 2 << 20;

/// Reports that wait for the window. A newer state or list replaces the one that waits, and log lines are merged.
#[derive(Debug, Default)]
pub struct Mailbox {
    waiting: Mutex<VecDeque<Report>>,
    arrived: Condvar,
}

impl Mailbox {
    /// Adds a report.
    pub fn push(&self, report: Report) {
        let mut waiting = self.lock();
        let since = waiting.iter().rposition(changes_server).map_or(0, |at| at + 1);
        let older = waiting
            .iter()
            .skip(since)
            .position(|older| is_replaceable(&report) && discriminant(older) == discriminant(&report));
        match older.and_then(|at| Some((since + at, waiting.remove(since + at)?))) {
            // The report keeps the place of the older one, because later reports may refer to it.
            Some((at, older)) => waiting.insert(at, merge(older, report)),
            None => waiting.push_back(report),
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes the oldest report; `None` if none waits.
    pub fn take(&self) -> Option<Report> {
        self.lock().pop_front()
    }

    /// Takes the oldest report, and waits for one if none is there.
    pub fn take_within(&self, timeout: Duration) -> Option<Report> {
        let waiting = self.lock();
        let waited = self
            .arrived
            .wait_timeout_while(waiting, timeout, |waiting| waiting.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Report>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true for a report after which states and lists are those of another server.
fn changes_server(report: &Report) -> bool {
    matches!(report, Report::Connected(_) | Report::Absent(_) | Report::Place(_))
}

/// Returns true for a state or a list that the worker sends again and again, and for log lines. Other reports are rare,
/// or follow a job of the window.
fn is_replaceable(report: &Report) -> bool {
    matches!(
        report,
        Report::Polled(_)
            | Report::Log(_)
            | Report::Ways(_)
            | Report::Desktop(_)
            | Report::Certificates(_)
            | Report::Upstreams(_)
            | Report::Bans(_)
            | Report::Php(_)
            | Report::Uses(_)
            | Report::Trust(_)
            | Report::Databases(_)
            | Report::Doctor(_)
            | Report::History(_)
            | Report::Level(_)
    )
}

/// Returns the newer report with the parts of the older one that it lacks.
fn merge(older: Report, newer: Report) -> Report {
    match (older, newer) {
        (Report::Polled(older), Report::Polled(newer)) => Report::Polled(Box::new(Poll {
            sites: newer.sites.or(older.sites),
            traffic: newer.traffic.or(older.traffic),
            config: newer.config.or(older.config),
            ..*newer
        })),
        (Report::Log(mut lines), Report::Log(newer)) => {
            lines.extend(newer);
            bound(&mut lines, MAX_LINES, MAX_BYTES);
            Report::Log(lines)
        }
        (_, newer) => newer,
    }
}

/// Removes the oldest lines until the others are at most `lines`, and have at most `bytes` bytes. The first line that
/// is left counts them as lost.
pub fn bound(events: &mut Vec<LogEvent>, lines: usize, bytes: usize) {
    let mut room = bytes;
    let fitting = events.iter().rev().take(lines).take_while(|event| {
        let fits = room >= event.line.len();
        room = room.saturating_sub(event.line.len());
        fits
    });
    // The newest line stays, even if it alone is too long.
    let kept = fitting.count().max(1).min(events.len());
    let removed = events.len() - kept;
    let lost: u64 = events.drain(..removed).map(|event| event.lost + 1).sum();
    if let Some(first) = events.first_mut() {
        first.lost += lost;
    }
}

#[cfg(test)]
mod tests {
    use rocknet_control::logs::LogKind;
    use rocknet_control::{SiteSummary, Status};

    use super::*;

    fn line(text: &str) -> LogEvent {
        LogEvent {
            kind: LogKind::Error,
            line: text.to_owned(),
            site: None,
            lost: 0,
        }
    }

    fn poll(requests: u64, sites: Option<usize>) -> Report {
        Report::Polled(Box::new(Poll {
            status: Status {
                requests,
                ..Status::default()
            },
            sites: sites.map(|count| vec![SiteSummary::default(); count]),
            ..Poll::default()
        }))
    }

    #[test]
    fn what_waits_is_bounded() {
        let mailbox = Mailbox::default();
        for number in 0..5_000 {
            mailbox.push(poll(number, (number == 7).then_some(3)));
            mailbox.push(Report::Log(vec![line("x"), line("y")]));
            mailbox.push(Report::Doctor(Ok(Vec::new())));
        }
        let mut taken = Vec::new();
        while let Some(report) = mailbox.take() {
            taken.push(report);
        }
        // The newest state, with the websites that an older one had.
        assert_eq!(taken[0], poll(4_999, Some(3)));
        let Report::Log(lines) = &taken[1] else {
            panic!("{:?}", taken[1])
        };
        assert_eq!((lines.len(), lines[0].lost), (MAX_LINES, 10_000 - MAX_LINES as u64));
        assert_eq!(taken[2..], [Report::Doctor(Ok(Vec::new()))]);
    }

    #[test]
    fn states_of_two_servers_are_not_merged_and_keep_their_place() {
        let mailbox = Mailbox::default();
        mailbox.push(poll(1, Some(3)));
        mailbox.push(Report::Connected("/b".into()));
        mailbox.push(poll(2, None));
        mailbox.push(Report::Failed("a".to_owned().into()));
        mailbox.push(poll(3, None));
        let taken: Vec<_> = std::iter::from_fn(|| mailbox.take()).collect();
        let expected = [
            poll(1, Some(3)),
            Report::Connected("/b".into()),
            poll(3, None),
            Report::Failed("a".to_owned().into()),
        ];
        assert_eq!(taken, expected);
    }

    #[test]
    fn instructions_are_never_merged() {
        let mailbox = Mailbox::default();
        for text in ["a", "b"] {
            mailbox.push(Report::Failed(text.to_owned().into()));
        }
        assert_eq!(mailbox.take(), Some(Report::Failed("a".to_owned().into())));
        assert_eq!(mailbox.take(), Some(Report::Failed("b".to_owned().into())));
        assert_eq!(mailbox.take_within(Duration::ZERO), None);
    }

    #[test]
    fn lines_are_bounded_by_their_bytes() {
        let mut lines = vec![line("aaaa"), line("bb"), line("cc")];
        bound(&mut lines, 9, 5);
        assert_eq!((lines.len(), lines[0].lost), (2, 1));
        bound(&mut lines, 9, 1);
        assert_eq!((lines.len(), &*lines[0].line, lines[0].lost), (1, "cc", 2));
    }
}
