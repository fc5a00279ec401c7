//! Events that the supervisor thread of PHP handles.

use super::pool::Pool;

/// Event for the supervisor thread.
pub enum PhpEvent {
    /// Sets the pools that run from now on, with their numbers. All other pools end once their requests are complete.
    SetPools(Vec<(u32, Pool)>),
    /// The pool with the first number accepts requests; the second number identifies its run.
    Ready(u32, u32),
    /// The pool with the first number has closed its standard error; the second number identifies its run.
    StderrClosed(u32, u32),
    /// Starts a new process in the pool with this number. The old one completes its requests.
    Restart(u32),
    /// Ends all pools and the thread.
    Stop,
}
