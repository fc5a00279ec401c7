//! Reads the monotonic clock of the machine.

pub(super) use crate::machine_clock::machine_uptime_ns as now_ns;
