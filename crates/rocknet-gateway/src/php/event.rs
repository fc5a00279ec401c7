//! Events of the thread that supervises every php-fpm.

use super::pool::Pool;

/// An event of the thread that supervises every php-fpm.
pub enum PhpEvent {
    /// The pools that run from now on, by number; all others end when their requests are answered.
    SetPools(Vec<(u32, Pool)>),
    /// The pool with this number takes requests, in its run of the second number.
    Ready(u32, u32),
    /// The pool with this number has closed its error stream, in its run of the second number.
    StderrClosed(u32, u32),
    Stop,
}
