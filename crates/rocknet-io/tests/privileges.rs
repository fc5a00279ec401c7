//! Dropping privileges, tested without the test harness, whose threads would keep theirs.

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
