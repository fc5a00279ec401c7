//! End of a server that was not stopped by this program.

/// End of a server that was not stopped by this program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ending {
    pub cause: EndingCause,
    /// Last lines of its output or of its journal; empty if they cannot be read.
    pub lines: Vec<String>,
}

/// Cause of the end, as far as the system names it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EndingCause {
    /// The process has ended with this exit code.
    Code(i32),
    /// This signal has ended the process.
    Signal(i32),
    /// The system has ended the process because memory was short.
    OutOfMemory,
    /// systemd has ended the unit, with this result.
    Result(String),
    /// Another program has started the server, so its exit status is not known.
    #[default]
    Unknown,
}
