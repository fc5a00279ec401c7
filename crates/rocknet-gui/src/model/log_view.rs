//! Lines of the logs: a bounded number of the latest, with the choice of the user.

use std::collections::VecDeque;
use std::time::Duration;

use rocknet_control::api::Level;
use rocknet_control::logs::{LogEvent, LogFilter, LogKind};

use super::request_line::RequestLine;
use crate::act::LogChoice;

/// Maximum number of lines that are kept: more than a reader scrolls through.
pub const MAX_LINES: usize = 2_000;

/// Time after which logs on a page that is not shown are no longer followed.
const IDLE: Duration = Duration::from_secs(300);

/// Maximum length of a line in characters. Longer lines are cut, because drawing them takes time.
const MAX_LINE: usize = 1_000;

/// Number of lines that show why a server has ended.
const LAST_LINES: usize = 5;

/// Line with the request that it records.
#[derive(Debug)]
pub struct KeptLine {
    /// Number of the line since the start of the program, from 1.
    pub number: u64,
    pub event: LogEvent,
    /// The parsed request, if the line belongs to the access log in JSON.
    pub request: Option<RequestLine>,
}

impl KeptLine {
    /// Returns true for a warning, an error, and a response with a status of 400 or above.
    fn is_problem(&self) -> bool {
        match &self.request {
            Some(request) => request.status >= 400,
            None => matches!(severity(&self.event), Some(Level::Error | Level::Warn)),
        }
    }
}

/// Lines of the logs, with the choice of the user.
#[derive(Debug)]
pub struct LogView {
    lines: VecDeque<KeptLine>,
    /// Number of lines that were received, without repeated ones.
    pub received: u64,
    pub choice: LogChoice,
    /// Name of the website whose lines are shown; `None`: all.
    pub site: Option<String>,
    /// Text that lines have to contain.
    pub filter: String,
    /// True if the newest line stays in view.
    pub follows: bool,
    /// True if the worker follows the logs of the present server.
    is_followed: bool,
    /// Time at which the page of the logs was left; `None` while it is shown.
    left: Option<Duration>,
    /// True until a new line arrives after the logs were followed again. Recent lines before it may be known.
    is_resuming: bool,
    /// Reason why the server sends no lines; the inner `None`: the token of this program does not permit it.
    pub refusal: Option<Option<String>>,
}

impl Default for LogView {
    fn default() -> LogView {
        LogView {
            lines: VecDeque::new(),
            received: 0,
            choice: LogChoice::default(),
            site: None,
            filter: String::new(),
            follows: true,
            is_followed: false,
            left: None,
            is_resuming: false,
            refusal: None,
        }
    }
}

impl LogView {
    /// Returns true if the worker has to begin to follow the logs.
    pub fn start(&mut self) -> bool {
        let starts = !std::mem::replace(&mut self.is_followed, true);
        if starts {
            self.refusal = None;
            // Lines may be left from before a loss of the connection, and the server sends its recent lines again.
            self.is_resuming = !self.lines.is_empty();
        }
        starts
    }

    /// Returns true if the logs of the present server are followed.
    pub fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Records that the page of the logs is shown.
    pub fn is_read(&mut self) {
        self.left = None;
    }

    /// Records that another page is shown.
    pub fn leave(&mut self, now: Duration) {
        self.left = self.left.or(Some(now));
    }

    /// Returns true if the worker has to end following the logs, because another page was shown for five minutes.
    pub fn unfollow(&mut self, now: Duration) -> bool {
        let is_idle = self.is_followed && self.left.is_some_and(|left| now.saturating_sub(left) >= IDLE);
        self.is_followed &= !is_idle;
        is_idle
    }

    /// Records that the server refused to send lines. They are requested again when the page is next shown.
    pub fn refuse(&mut self, reason: Option<String>) {
        self.is_followed = false;
        self.refusal = Some(reason);
    }

    /// Ends following after the loss of the server. Its lines are kept, because they may have the reason.
    pub fn stop(&mut self) {
        self.is_followed = false;
        self.refusal = None;
    }

    /// Ends following, and discards the lines, because another server is used.
    pub fn forget(&mut self) {
        self.stop();
        self.lines.clear();
        self.is_resuming = false;
    }

    /// Returns the last lines of the error log.
    pub fn last_errors(&self) -> Vec<String> {
        let errors = self.lines.iter().rev().filter(|line| line.event.kind == LogKind::Error);
        let mut lines: Vec<String> = errors.take(LAST_LINES).map(|line| line.event.line.clone()).collect();
        lines.reverse();
        lines
    }

    /// Records that the logs are followed again. The server sends its recent lines first, and known ones among them are
    /// not added again.
    pub fn resume(&mut self) {
        self.is_resuming = true;
    }

    /// Adds lines.
    pub fn push(&mut self, events: Vec<LogEvent>) {
        for mut event in events {
            let is_access = event.kind == LogKind::Access;
            let request = is_access.then(|| RequestLine::parse(&event.line)).flatten();
            if let Some((end, _)) = event.line.char_indices().nth(MAX_LINE) {
                event.line.truncate(end);
                event.line.push('…');
                // A line that was cut would otherwise keep the memory of its whole length.
                event.line.shrink_to_fit();
            }
            if self.is_resuming {
                // Lines of the error log have the time in milliseconds, so equal lines are the same line.
                let is_known = |known: &KeptLine| known.event.kind == event.kind && known.event.line == event.line;
                if self.lines.iter().any(is_known) {
                    continue;
                }
                self.is_resuming = false;
            }
            self.received += 1;
            self.lines.push_back(KeptLine {
                number: self.received,
                event,
                request,
            });
        }
        while self.lines.len() > MAX_LINES {
            self.lines.pop_front();
        }
    }

    /// Returns the chosen lines, the oldest first.
    pub fn chosen(&self) -> impl Iterator<Item = &KeptLine> {
        let is_chosen = |line: &KeptLine| match self.choice {
            LogChoice::All => true,
            LogChoice::Errors => line.event.kind == LogKind::Error,
            LogChoice::Access => line.event.kind == LogKind::Access,
            LogChoice::Problems => line.is_problem(),
        };
        let wanted = self.filter.to_lowercase();
        let of_site = self
            .lines
            .iter()
            .filter(|line| self.site.is_none() || line.event.site == self.site);
        of_site.filter(move |line| {
            is_chosen(line) && (wanted.is_empty() || line.event.line.to_lowercase().contains(&wanted))
        })
    }

    /// Returns the chosen lines, the oldest first, each with the number of lines that were lost between it and the
    /// chosen line before it. The window or the server has dropped them, because they came too fast.
    pub fn shown(&self) -> Vec<(u64, &KeptLine)> {
        let mut shown = Vec::new();
        let mut chosen = self.chosen().peekable();
        let mut lost = 0;
        for line in &self.lines {
            lost += line.event.lost;
            if chosen.next_if(|next| std::ptr::eq(*next, line)).is_some() {
                shown.push((std::mem::take(&mut lost), line));
            }
        }
        shown
    }

    /// Returns true if no line was received.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Returns the severity of a line of the error log; `None` for other lines.
pub fn severity(event: &LogEvent) -> Option<Level> {
    let at_most = |level| {
        let filter = LogFilter {
            level: Some(level),
            ..LogFilter::default()
        };
        filter.selects(event.kind, None, &event.line)
    };
    // A line without a level is selected at every level, also at the most severe one.
    let has_level = event
        .line
        .split_whitespace()
        .nth(1)
        .is_some_and(|word| Level::from_name(&word.to_ascii_lowercase()).is_some());
    if event.kind == LogKind::Access || !has_level {
        return None;
    }
    Level::ALL.into_iter().find(|level| at_most(*level))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: LogKind, line: &str) -> LogEvent {
        LogEvent {
            kind,
            line: line.to_owned(),
            site: None,
            lost: 0,
        }
    }

    fn of_site(site: &str, event: LogEvent) -> LogEvent {
        LogEvent {
            site: Some(site.to_owned()),
            ..event
        }
    }

    #[test]
    fn lines_are_bounded_and_chosen() {
        let mut view = LogView::default();
        for number in 0..MAX_LINES + 3 {
            view.push(vec![event(LogKind::Access, &format!("GET /{number}"))]);
        }
        assert_eq!(view.chosen().count(), MAX_LINES);
        assert_eq!(
            (view.chosen().next().unwrap().number, view.received),
            (4, MAX_LINES as u64 + 3)
        );
        view.push(vec![event(LogKind::Error, "time WARN slow")]);
        view.choice = LogChoice::Errors;
        assert_eq!(
            view.chosen().map(|line| &*line.event.line).collect::<Vec<_>>(),
            ["time WARN slow"]
        );
        view.choice = LogChoice::All;
        view.filter = "get /200".to_owned();
        // 200, 2000, 2001 and 2002; the first three lines were removed, and the warning a fourth.
        assert_eq!(view.chosen().count(), 4);
        view.push(vec![event(LogKind::Error, &"ä".repeat(MAX_LINE + 1))]);
        view.filter = "ä".to_owned();
        assert_eq!(view.chosen().next().unwrap().event.line.chars().count(), MAX_LINE + 1);
    }

    #[test]
    fn lost_lines_are_counted_between_the_chosen_ones() {
        let mut view = LogView::default();
        let lost = |lost, event| LogEvent { lost, ..event };
        view.push(vec![
            lost(2, event(LogKind::Error, "a")),
            lost(3, event(LogKind::Access, "GET /")),
            lost(4, event(LogKind::Error, "b")),
            event(LogKind::Error, "c"),
        ]);
        let counts = |view: &LogView| view.shown().iter().map(|(lost, _)| *lost).collect::<Vec<_>>();
        assert_eq!(counts(&view), [2, 3, 4, 0]);
        view.choice = LogChoice::Errors;
        assert_eq!(counts(&view), [2, 7, 0]);
    }

    #[test]
    fn a_new_connection_repeats_no_line_and_a_new_server_is_followed_anew() {
        let mut view = LogView::default();
        assert!(view.start() && !view.start());
        view.push(vec![event(LogKind::Error, "x")]);
        // The lines stay after the loss of the server, whose recent lines may arrive again.
        view.stop();
        assert_eq!((view.last_errors(), view.start()), (vec!["x".to_owned()], true));
        view.push(vec![
            event(LogKind::Error, "x"),
            event(LogKind::Error, "y"),
            event(LogKind::Error, "x"),
        ]);
        assert_eq!(view.last_errors(), ["x", "y", "x"]);
        view.forget();
        assert!(view.is_empty() && view.start());
        view.push(vec![event(LogKind::Error, "x"), event(LogKind::Error, "x")]);
        assert_eq!(view.chosen().count(), 2);
    }

    #[test]
    fn severities_are_those_of_the_server() {
        for (kind, line, expected) in [
            (LogKind::Error, "2026-11-28T00:00:00 WARN  x", Some(Level::Warn)),
            (LogKind::Error, "2026-11-28T00:00:00 ERROR x", Some(Level::Error)),
            (LogKind::Error, "  second line", None),
            (LogKind::Access, "GET error", None),
        ] {
            assert_eq!(severity(&event(kind, line)), expected, "{line}");
        }
    }

    #[test]
    fn a_resumed_stream_repeats_no_line() {
        let mut view = LogView::default();
        let lines = |texts: &[&str]| texts.iter().map(|text| event(LogKind::Error, text)).collect();
        let long = "x".repeat(MAX_LINE + 1);
        view.push(lines(&["t1 INFO a", &long, "t2 INFO b"]));
        view.resume();
        let mut again: Vec<LogEvent> = lines(&["t1 INFO a", &long, "t2 INFO b", "t3 INFO c", "t3 INFO c"]);
        again[2].lost = 5;
        view.push(again);
        let shown: Vec<&str> = view.chosen().map(|line| &*line.event.line).collect();
        // Only lines before the first new one can be repetitions.
        assert_eq!(shown.len(), 5, "{shown:?}");
        assert_eq!(shown[2..], ["t2 INFO b", "t3 INFO c", "t3 INFO c"]);
    }

    #[test]
    fn lines_of_a_website_are_chosen() {
        let mut view = LogView::default();
        let lines = vec![
            of_site("a.test", event(LogKind::Error, "t WARN slow site=a.test")),
            event(LogKind::Error, "t INFO ready"),
            of_site("a.test", event(LogKind::Access, "GET /")),
            of_site("b.test", event(LogKind::Access, r#"{"host":"b.test","status":200}"#)),
        ];
        view.push(lines);
        view.site = Some("a.test".to_owned());
        assert_eq!(view.chosen().count(), 2);
        view.choice = LogChoice::Access;
        assert_eq!(view.chosen().count(), 1);
        view.site = None;
        assert_eq!(view.chosen().count(), 2);
        view.choice = LogChoice::Problems;
        assert_eq!(view.chosen().count(), 1);
        let failed = event(LogKind::Access, r#"{"host":"b.test","status":404}"#);
        view.push(vec![failed]);
        assert_eq!(view.chosen().count(), 2);
    }
}
