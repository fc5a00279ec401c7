//! Error log and access logs, as meant.

use std::path::PathBuf;
use std::time::Duration;

use super::with_defaults::with_defaults;
use crate::choice::{Choice, Word, choice};

choice! {
    /// The least urgent messages that the error log holds.
    #[derive(Copy)]
    pub enum Level {
        Error = "error", "what failed";
        Warn = "warn", "and what may fail soon";
        Info = "info", "and what the server does: start, reload, stop";
        Debug = "debug", "and why it answers as it does";
        Trace = "trace", "and every step; slow";
    }
    default Info
}

choice! {
    /// The destination of a log.
    pub enum LogTarget {
        Stderr = "stderr", "standard error";
        Stdout = "stdout", "standard output";
        Off = "off", "none";
    }
    with {
        File(PathBuf),
    }
    default Off
}

choice! {
    /// The form of a line of the access log.
    #[derive(Copy)]
    pub enum AccessFormat {
        Common = "common", "the Common Log Format";
        Combined = "combined", "and Referer and User-Agent";
        Json = "json", "one object a line";
    }
    default Combined
}

impl LogTarget {
    /// The words of an access log: all but the first, because standard error is for errors.
    pub(crate) const ACCESS: &'static [Word] = LogTarget::WORDS.split_at(1).1;
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct Log {
        pub level: Level = Level::default(),
        /// Destination of the error log.
        pub errors: LogTarget = LogTarget::Stderr,
        /// Access log of the sites that have none of their own.
        pub access: AccessLog = AccessLog::default(),
        pub rotate: Rotate = Rotate::default(),
    }
}

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AccessLog {
        pub target: LogTarget = LogTarget::Off,
        pub format: AccessFormat = AccessFormat::default(),
    }
}

with_defaults! {
    /// Size and age at which a log file is set aside, and the number of old files that are kept.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Rotate {
        pub size: Option<u64> = Some(100_000_000),
        pub age: Option<Duration> = None,
        pub keep: usize = 10,
    }
}
