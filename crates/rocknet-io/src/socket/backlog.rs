//! Default length of the accept queue.

/// Maximum number of established connections that wait to be accepted. It is larger than the common 511, so that a
/// burst of thousands of connections fits. The kernel limits it to `net.core.somaxconn` (4,096 by default since Linux
/// 5.4).
pub const BACKLOG: i32 = 4096;
