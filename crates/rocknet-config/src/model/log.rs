//! Settings of the error log and the access logs.

use std::path::PathBuf;
use std::time::Duration;

use super::with_defaults::with_defaults;
use crate::choice::{Choice, Word, choice};

choice! {
    /// Minimum severity of messages in the error log.
    #[derive(Copy)]
    pub enum Level {
        Error = "error", "failures";
        Warn = "warn", "also conditions that may lead to failures";
        Info = "info", "also the operation of the server: start, reload, stop";
        Debug = "debug", "also the reasons for responses";
        Trace = "trace", "also every step; slow";
    }
    default Info
}

choice! {
    /// Destination of a log.
    pub enum LogTarget {
        Stderr = "stderr", "standard error";
        Stdout = "stdout", "standard output";
        Off = "off", "no log";
    }
    with {
        /// Path of a file.
        File(PathBuf),
    }
    default Off
}

choice! {
    /// Format of a line of the access log.
    pub enum AccessFormat {
        Common = "common", "the Common Log Format";
        Combined = "combined", "the Common Log Format with `Referer` and `User-Agent`";
        Json = "json", "one JSON object per line";
        Dev = "dev", "time, status, method, path, duration and size for a terminal, in colour";
    }
    with {
        /// Line of the operator, a template of [`Scope::Log`](crate::template::Scope::Log).
        Custom(String),
    }
    default Combined
}

impl LogTarget {
    /// Words for the destination of an access log. The first word, `stderr`, is left out because standard error is
    /// for the error log.
    pub(crate) const ACCESS: &'static [Word] = LogTarget::WORDS.split_at(1).1;
}

with_defaults! {
    /// Settings of `[log]`.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Log {
        /// Minimum severity in the error log.
        pub level: Level = Level::default(),
        /// Destination of the error log.
        pub errors: LogTarget = LogTarget::Stderr,
        /// Access log of the sites that set none.
        pub access: AccessLog = AccessLog::default(),
        /// Rotation of log files.
        pub rotate: Rotate = Rotate::default(),
    }
}

with_defaults! {
    /// Access log of a site, or the default of all sites.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AccessLog {
        /// Destination.
        pub target: LogTarget = LogTarget::Off,
        /// Format of a line.
        pub format: AccessFormat = AccessFormat::default(),
    }
}

impl AccessLog {
    /// Returns the access log of a developer's machine: a line for each request at the terminal.
    pub fn for_terminal() -> AccessLog {
        AccessLog {
            target: LogTarget::Stdout,
            format: AccessFormat::Dev,
        }
    }
}

with_defaults! {
    /// Size and age at which a log file is rotated, and the number of rotated files that are kept.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Rotate {
        /// Size at which a file is rotated, in bytes; `None`: files are not rotated by size.
        pub size: Option<u64> = Some(100_000_000),
        /// Age at which a file is rotated; `None`: files are not rotated by age.
        pub age: Option<Duration> = None,
        /// Maximum number of rotated files; the oldest file is removed first.
        pub keep: usize = 10,
    }
}
