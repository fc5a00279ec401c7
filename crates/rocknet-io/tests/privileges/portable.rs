//! Tests that dropping privileges fails on systems that do not support it.

use std::process::ExitCode;

use rocknet_io::privileges::{User, drop_to};

pub fn run() -> ExitCode {
    let user = User::find("64123:64124").unwrap();
    drop_to(&user).expect_err("not built for this system");
    ExitCode::SUCCESS
}
