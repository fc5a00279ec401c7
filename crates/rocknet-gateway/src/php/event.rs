//! Events that the supervisor thread of PHP handles.

use super::pool::Pool;

/// Event for the supervisor thread.
pub enum PhpEvent {
    /// Sets the pools that run from now on, with their numbers. All other pools end once their requests are complete.
    SetPools(Vec<(u32, Pool)>),
    /// A pool accepts requests. The first number identifies the pool. The second one identifies the run: it counts
    /// the starts of the pool's php-fpm so far.
    Ready(u32, u32),
    /// A pool has closed its standard error. The numbers identify the pool and the run, as in [`PhpEvent::Ready`].
    StderrClosed(u32, u32),
    /// Starts a new process in the pool with this number. The old process completes its requests.
    Restart(u32),
    /// Starts the process in the pool with this number, unless it runs.
    Start(u32),
    /// Ends the process in the pool with this number once its requests are complete, and starts none until
    /// [`PhpEvent::Start`] or [`PhpEvent::Restart`].
    Halt(u32),
    /// Ends all pools and the thread.
    Stop,
}
