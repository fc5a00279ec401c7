//! Cores of the machine and the use of each.

/// Core of every measured server, and core of the load. A server that can use more cores shows it elsewhere.
pub const SERVER_CORE: usize = 0;
pub const LOAD_CORE: usize = 1;
/// Number of cores that the bench needs.
pub const CORES: usize = 2;
