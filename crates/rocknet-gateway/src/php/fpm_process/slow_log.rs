//! The log of slow requests: reads what php-fpm writes about a request that runs too long, and logs it with its site.
//!
//! php-fpm writes a warning with script and request. If it may trace the process (`ptrace`, which the sandbox denies),
//! it adds the functions that are being run (`TIME` is `[29-Nov-2026 10:56:47]`):
//!
//! ```text
//! TIME WARNING: [pool p] child 4, script '/w/a.php' (request: "GET /a.php") executing too slow (5.0 sec), logging
//! TIME  [pool p] pid 4
//! script_filename = /w/a.php
//! [0x00007ffb44e151a0] sleep() /w/a.php:2
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::php::PhpSockets;

/// Maximum number of functions in one line of the log, the innermost first.
const MAX_FUNCTIONS: usize = 32;

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
    /// Method and path.
    request: &'l str,
    /// Time that the request has run for, in seconds.
    seconds: &'l str,
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
                    trace.functions.push(function.to_owned());
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
            tracing::warn!(
                site = site.as_deref(),
                script,
                php = pool,
                "slow request: {request} has run for {seconds} s"
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

/// Parses the warning about a slow request.
fn slow_request(line: &str) -> Option<SlowRequest<'_>> {
    let (_, rest) = line.split_once("] WARNING: [pool ")?;
    let (_, rest) = rest.split_once(", script '")?;
    let (rest, seconds) = rest.rsplit_once("\") executing too slow (")?;
    let (script, request) = rest.split_once("' (request: \"")?;
    let (seconds, _) = seconds.split_once(" sec)")?;
    // Six decimal places are more than the interval at which php-fpm checks.
    let end = seconds
        .find('.')
        .map_or(seconds.len(), |at| (at + 2).min(seconds.len()));
    Some(SlowRequest {
        script,
        request,
        seconds: &seconds[..end],
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
        ] {
            let line = line(script, request);
            let expected = SlowRequest {
                script,
                request,
                seconds: "12",
            };
            assert_eq!(slow_request(&line), Some(expected));
        }
        for other in ["", "executing too slow", "] WARNING: [pool p] child 4 exited"] {
            assert_eq!(slow_request(other), None);
        }
    }
}
