//! Violations and unusual uses of HTTP/3, sent with h3i to a running server.
//!
//! `h3i-client PORT` connects to `localhost` at PORT, once for each case. With `--retire-connection-ids`, it retires
//! connection IDs instead. `SSL_CERT_FILE` names the root certificates. The server has the files and the upstream of
//! `cargo xtask conform h3`.

mod actions;
mod case;
mod cases;
mod client;
mod connection_ids;
mod error_code;

use client::Client;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(port) = arguments.next().and_then(|port| port.parse().ok()) else {
        eprintln!("usage: h3i-client PORT [--retire-connection-ids]");
        return ExitCode::from(2);
    };
    if arguments.next().as_deref() == Some("--retire-connection-ids") {
        return match connection_ids::flood(port) {
            Ok(retired) => {
                println!("{retired} connection IDs retired");
                ExitCode::SUCCESS
            }
            Err(failure) => {
                eprintln!("connection IDs: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    let client = Client::new(port);
    let (mut passed, mut failed) = (0, 0);
    for (group, cases) in cases::groups() {
        let count = cases.len();
        for case in cases {
            match client.run(&case) {
                Ok(()) => passed += 1,
                Err(failure) => {
                    failed += 1;
                    eprintln!("{group}: {} ({}): {failure}", case.name, case.rule);
                }
            }
        }
        println!("{group}: {count} cases");
    }
    println!("{passed} cases passed, {failed} failed");
    ExitCode::from(u8::from(failed > 0))
}
