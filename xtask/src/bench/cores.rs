//! Numbers of the cores that the measured server and the load use.

/// Core to which every measured server is pinned. The bench compares the cost on one core, not scaling over cores.
pub const SERVER_CORE: usize = 0;
/// Core to which the load generators are pinned.
pub const LOAD_CORE: usize = 1;
/// Number of cores that the bench needs.
pub const CORES: usize = 2;
