//! The log of slow requests: reads what php-fpm writes about a request that runs too long, and logs it with its site.
//!
//! php-fpm writes a warning with script and request. If it may trace the process (`ptrace`, which the sandbox denies),
//! it adds the functions that are being run (`TIME` is `[29-Nov-2026 10:56:47]`):
//!
//! ```text
//! TIME WARNING: [pool p] child 4, script '/w/a.php' (request: "GET /a.php") executing too slow (5.003421 sec), logging
//! TIME  [pool p] pid 4
//! script_filename = /w/a.php
//! [0x00007ffb44e151a0] sleep() /w/a.php:2
//! ```
//!
//! The query of the request follows its path. It is not logged, because it may contain passwords and tokens.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::php::PhpSockets;

/// Maximum number of functions in one line of the log, the innermost first.
const MAX_FUNCTIONS: usize = 32;

/// Maximum length of a function in the log, in characters.
const MAX_FUNCTION: usize = 256;

/// Log of slow requests of one pool.
pub struct SlowLog {
    pool: String,
    socket: PathBuf,
    sockets: Arc<PhpSockets>,
    /// The trace that is being read.
    trace: Option<Trace>,
}

/// Functions that a slow request was running.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    script: String,
    functions: Vec<String>,
}

/// A slow request.
#[derive(Debug, PartialEq, Eq)]
struct SlowRequest<'l> {
    script: &'l str,
    /// Method and path, without the query.
    request: &'l str,
    /// Time that the request has run for, in seconds; `None` if the line was cut before it.
    seconds: Option<&'l str>,
}

impl SlowLog {
    /// Creates the log. `pool`: name of the pool. `socket`: its socket, by which `sockets` finds the site of a script.
    pub fn new(pool: String, socket: PathBuf, sockets: Arc<PhpSockets>) -> SlowLog {
        SlowLog {
            pool,
            socket,
            sockets,
            trace: None,
        }
    }

    /// Returns the name of the pool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Takes a line of php-fpm that concerns a slow request. Returns false for other lines.
    pub fn take(&mut self, line: &str) -> bool {
        if let Some(trace) = &mut self.trace {
            if let Some(script) = line.strip_prefix("script_filename = ") {
                trace.script = script.to_owned();
                return true;
            }
            if let Some((_, function)) = line.strip_prefix("[0x").and_then(|rest| rest.split_once("] ")) {
                if trace.functions.len() < MAX_FUNCTIONS {
                    trace.functions.push(function.chars().take(MAX_FUNCTION).collect());
                }
                return true;
            }
            self.end_trace();
        }
        if let Some(slow) = slow_request(line) {
            let (site, pool) = (self.site(slow.script), &self.pool);
            let SlowRequest {
                script,
                request,
                seconds,
            } = slow;
            let time = match seconds {
                Some(seconds) => format!("has run for {seconds} s"),
                None => "has run for longer than `slow`".to_owned(),
            };
            tracing::warn!(
                site = site.as_deref(),
                script,
                php = pool,
                "slow request: {request} {time}"
            );
            return true;
        }
        if is_trace_head(line) {
            self.trace = Some(Trace::default());
            return true;
        }
        if line.contains("] ERROR: failed to ptrace(") {
            tracing::debug!(
                php = self.pool,
                "the sandbox permits no trace of a slow request: {line}"
            );
            return true;
        }
        false
    }

    /// Logs the trace that is being read, if there is one.
    pub fn end_trace(&mut self) {
        let Some(trace) = self.trace.take().filter(|trace| !trace.functions.is_empty()) else {
            return;
        };
        let site = self.site(&trace.script);
        tracing::warn!(
            site = site.as_deref(),
            script = trace.script,
            php = self.pool,
            "slow request, functions being run: {}",
            trace.functions.join(" < ")
        );
    }

    fn site(&self, script: &str) -> Option<String> {
        self.sockets.site(&self.socket, Path::new(script))
    }
}

/// Parses the warning about a slow request, even if its end is missing: no part of the query may be logged.
fn slow_request(line: &str) -> Option<SlowRequest<'_>> {
    let (_, rest) = line.split_once("] WARNING: [pool ")?;
    let (_, rest) = rest.split_once(", script '")?;
    let (rest, end) = match rest.rsplit_once("\") executing too slow (") {
        Some((rest, end)) => (rest, Some(end)),
        None => (rest, None),
    };
    let (script, request) = rest.split_once("' (request: \"")?;
    // In a line that was cut, the query may imitate the time.
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = end.and_then(|end| Some(end.split_once(" sec)")?.0)).filter(is_number);
    let seconds = seconds.map(|seconds| {
        // Keeps one of the six decimal places, because php-fpm does not check more precisely than that.
        let end = seconds.find('.').map_or(seconds.len(), |at| at + 2);
        seconds.get(..end).unwrap_or(seconds)
    });
    Some(SlowRequest {
        script,
        request: request.split('?').next().unwrap_or_default(),
        seconds,
    })
}

/// Returns true for the first line of a trace: a time, two spaces, a pool and a process.
fn is_trace_head(line: &str) -> bool {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("]  [pool "));
    let process = rest.and_then(|(_, rest)| rest.split_once("] pid "));
    process.is_some_and(|(_, pid)| pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    const TIME: &str = "[29-Nov-2026 10:56:47]";

    #[test]
    fn the_lines_of_a_slow_request_are_taken() {
        let mut log = SlowLog::new("8.2".to_owned(), PathBuf::new(), Arc::default());
        assert!(log.take(&format!(
            "{TIME} WARNING: [pool p] child 4, script '/w/a.php' (request: \"GET /a.php\") executing too slow (1.004006 sec), logging"
        )));
        assert!(!log.take(&format!("{TIME} NOTICE: about to trace 4")));
        assert!(!log.take(""));
        assert!(log.take(&format!("{TIME}  [pool p] pid 4")));
        assert!(log.take("script_filename = /w/a.php"));
        for _ in 0..2 * MAX_FUNCTIONS {
            assert!(log.take("[0x00007ffb44e151a0] sleep() /w/a.php:2"));
        }
        let trace = log.trace.as_ref().expect("a trace");
        assert_eq!(trace.script, "/w/a.php");
        assert_eq!(trace.functions, vec!["sleep() /w/a.php:2"; MAX_FUNCTIONS]);
        assert!(!log.take(&format!("{TIME} NOTICE: finished trace of 4")));
        assert_eq!(log.trace, None);
        assert!(log.take(&format!("{TIME}  [pool p] pid 4")));
        assert!(log.take(&format!(
            "[0x00007ffb44e151a0] {}() /w/a.php:2",
            "é".repeat(2 * MAX_FUNCTION)
        )));
        let functions = log.trace.take().map(|trace| trace.functions);
        assert_eq!(functions, Some(vec!["é".repeat(MAX_FUNCTION)]));
        // Without a trace these lines have another meaning.
        assert!(!log.take("script_filename = /w/a.php"));
        assert!(!log.take("[0x00007ffb44e151a0] sleep() /w/a.php:2"));
        assert!(log.take(&format!(
            "{TIME} ERROR: failed to ptrace(ATTACH) child 4: Operation not permitted (1)"
        )));
    }

    #[test]
    fn odd_names_do_not_confuse_the_parser() {
        let line = |script: &str, request: &str| {
            format!(
                "{TIME} WARNING: [pool p] child 4, script '{script}' (request: \"{request}\") executing too slow (12 sec), logging"
            )
        };
        for (script, request) in [
            ("/w/it's.php", "GET /"),
            ("/w/a.php", "GET /?a=\") executing too slow (1 sec)"),
            ("/w/a.php", "GET /?token=secret?x"),
        ] {
            let line = line(script, request);
            let expected = |seconds| SlowRequest {
                script,
                request: "GET /",
                seconds,
            };
            assert_eq!(slow_request(&line), Some(expected(Some("12"))));
            // php-fpm cuts long lines.
            let (cut, _) = line.split_once("\") executing").expect("a time");
            assert_eq!(slow_request(cut), Some(expected(None)));
        }
        let cut = format!("{TIME} WARNING: [pool p] child 4, script '/w/a.php' (request: \"GET /a?token=secr");
        assert_eq!(slow_request(&cut).map(|slow| slow.request), Some("GET /a"));
        let odd = line("/w/a.php", "GET /").replace("12 sec", "1. sec");
        assert_eq!(slow_request(&odd).and_then(|slow| slow.seconds), Some("1."));
        for other in ["", "executing too slow", "] WARNING: [pool p] child 4 exited"] {
            assert_eq!(slow_request(other), None);
        }
    }

    proptest! {
        /// The query consists of the character `Q`, and of parts of the line that could mislead the parser.
        #[test]
        fn no_part_of_a_query_is_logged(
            parts in prop::collection::vec(prop::sample::select(&["Q", "?", "\") executing too slow (", " sec)", "' (request: \"", "é"][..]), 0..8),
            cut in 0..400usize,
        ) {
            let head = format!("{TIME} WARNING: [pool p] child 4, script '/w/a.php' (request: \"GET /a.php?");
            let line = format!("{head}{}\") executing too slow (1.004006 sec), logging", parts.concat());
            let line: String = line.chars().take(head.len() + cut).collect();
            let slow = slow_request(&line).expect("a slow request");
            prop_assert_eq!((slow.script, slow.request), ("/w/a.php", "GET /a.php"));
            prop_assert!(!slow.seconds.is_some_and(|seconds| seconds.contains('Q')));
        }
    }
}
