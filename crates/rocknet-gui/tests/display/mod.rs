//! An X server in memory for one test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rocknet_testing::{Need, skip};

/// A display, which ends with this value.
pub struct Display {
    server: Child,
    /// Value of the environment variable `DISPLAY`.
    pub name: String,
}

impl Display {
    /// Starts a display. The X server chooses a free number. Returns `None`, and records a skip, if a program is
    /// missing on this machine.
    pub fn start(programs: &[&str]) -> Option<Display> {
        for program in ["Xvfb"].iter().chain(programs) {
            let found = Command::new("sh")
                .arg("-c")
                .arg(format!("command -v {program}"))
                .output();
            if !found.is_ok_and(|found| found.status.success()) {
                skip(Need::Program(program), "it is not installed");
                return None;
            }
        }
        // Without `-noreset`, the display refuses clients for a moment after the last one has ended.
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"])
            .arg("-noreset")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let number = line.trim();
        assert!(!number.is_empty(), "Xvfb has ended");
        Some(Display {
            name: format!(":{number}"),
            server,
        })
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
