//! Writes the standard error of an application to the error log.

use rocknet_log::throttle::Cause;
use tracing::Level;

/// Maximum number of bytes logged for one request, so that a script that warns in a loop does not fill the disk.
const MAX_BYTES: usize = 8 * 1024;
/// Maximum length of one line in bytes.
const MAX_LINE: usize = 2 * 1024;

/// Collects the lines of one request and logs each line with its site and script. A line may arrive in pieces.
pub struct StderrLog {
    /// Prefix of each line, such as `PHP`.
    source: &'static str,
    site: Box<str>,
    script: Box<str>,
    line: Vec<u8>,
    /// Bytes that may still be logged.
    remaining: usize,
    /// True once it was logged that the rest is not logged.
    is_truncated: bool,
    /// True once it was logged that the standard output is kept open.
    has_reported_output: bool,
}

impl StderrLog {
    /// Creates a log for one request. `source`: prefix of each line.
    pub fn new(source: &'static str, site: &str, script: &str) -> StderrLog {
        StderrLog {
            source,
            site: site.into(),
            script: script.into(),
            line: Vec::new(),
            remaining: MAX_BYTES,
            is_truncated: false,
            has_reported_output: false,
        }
    }

    /// Adds received bytes. Complete lines, and lines that are too long, are logged immediately.
    pub fn add(&mut self, bytes: &[u8]) {
        let taken = &bytes[..bytes.len().min(self.remaining)];
        let mut rest = taken;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.line.extend_from_slice(&rest[..end]);
            self.log_line();
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > MAX_LINE {
            self.log_line();
        }
        self.remaining -= taken.len();
        if taken.len() < bytes.len() && !std::mem::replace(&mut self.is_truncated, true) {
            self.log_line();
            tracing::warn!(
                site = %self.site,
                script = %self.script,
                "{}: more than {MAX_BYTES} bytes of messages for one request; the rest is not logged",
                self.source
            );
        }
    }

    /// Logs, once for a request, that the program has ended and a background process keeps its standard output open.
    /// `is_incomplete`: the response lacks bytes of its `Content-Length`, so it has not ended.
    pub fn output_is_open(&mut self, is_incomplete: bool) {
        let cause = Cause {
            level: Level::WARN,
            what: "a program whose output is kept open",
            site: &self.site,
            subject: &self.script,
        };
        if !std::mem::replace(&mut self.has_reported_output, true) && cause.may_be_logged() {
            let result = match is_incomplete {
                true => "the response is incomplete and waits for the rest of its `Content-Length`",
                false => "the response has ended without it",
            };
            tracing::warn!(
                site = %self.site,
                script = %self.script,
                help = "Redirect the output of background processes: program >/dev/null 2>&1 &",
                "the program has ended, but a process that it started keeps its standard output open; {result}"
            );
        }
    }

    fn log_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        for piece in line.trim_ascii().chunks(MAX_LINE) {
            let text = String::from_utf8_lossy(piece);
            tracing::error!(site = %self.site, script = %self.script, "{}: {text}", self.source);
        }
    }
}

impl Drop for StderrLog {
    fn drop(&mut self) {
        self.log_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_reported_also_if_a_piece_ends_there() {
        let mut log = StderrLog::new("PHP", "example.com", "/a.php");
        log.add(&[b'a'; MAX_BYTES - 1]);
        log.add(b"\n");
        assert!(!log.is_truncated, "all messages are logged");
        log.add(b"more\n");
        assert!(log.is_truncated);
    }
}
