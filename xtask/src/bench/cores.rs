//! The cores of the machine, and what each is for.

/// The core that every server runs on, and the one for the load. A server that could use more shows it elsewhere.
pub const SERVER_CORE: usize = 0;
pub const LOAD_CORE: usize = 1;
/// How many cores that takes.
pub const CORES: usize = 2;
