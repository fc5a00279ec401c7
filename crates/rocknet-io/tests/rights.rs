//! Giving up root, tried without the test harness, whose threads would keep their rights.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
#[path = "rights/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "rights/portable.rs"]
mod system;

fn main() -> ExitCode {
    system::run()
}
