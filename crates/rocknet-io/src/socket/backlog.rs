//! How many connections may wait to be accepted.

/// Connections that the kernel completes and holds until they are accepted. More than the common 511, because all of
/// a burst of thousands must find room; the kernel cuts it to `net.core.somaxconn` (4,096 on Linux today).
pub const BACKLOG: i32 = 4096;
