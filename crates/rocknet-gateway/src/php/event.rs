//! Events that the supervisor thread of PHP handles.

use super::pool::Pool;

/// Event for the supervisor thread.
pub enum PhpEvent {
    /// Sets the pools that run from now on, with their numbers. All other pools end once their requests are complete.
    SetPools(Vec<(u32, Pool)>),
    /// The pool with the first number accepts requests. The second number is that of its run: the number of starts of
    /// its php-fpm so far.
    Ready(u32, u32),
    /// The pool with the first number has closed its standard error. The second number is that of its run.
    StderrClosed(u32, u32),
    /// Starts a new process in the pool with this number. The old one completes its requests.
    Restart(u32),
    /// Ends all pools and the thread.
    Stop,
}
