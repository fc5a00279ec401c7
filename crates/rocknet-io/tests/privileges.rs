//! Tests of dropping privileges, without the standard test harness, whose other threads would keep their privileges.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[path = "privileges/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "privileges/portable.rs"]
mod system;

fn main() -> ExitCode {
    system::run()
}
