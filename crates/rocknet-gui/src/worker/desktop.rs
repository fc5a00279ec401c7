//! Queries the settings portal whether the desktop prefers dark or light windows.
//!
//! The portal is queried by a program, because a client of D-Bus would be a large dependency. The program runs beside
//! the worker, because a desktop that starts its portal for this query may take seconds.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::theme::ColorScheme;

/// Maximum time for a reply.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between two checks whether the program has replied.
const PAUSE: Duration = Duration::from_millis(20);

/// Programs that call the portal, with their arguments. The first is part of systemd, the second of GLib.
const CALLS: [(&str, &[&str]); 2] = [
    (
        "busctl",
        &[
            "--user",
            "call",
            "org.freedesktop.portal.Desktop",
            "/org/freedesktop/portal/desktop",
            "org.freedesktop.portal.Settings",
            "Read",
            "ss",
            "org.freedesktop.appearance",
            "color-scheme",
        ],
    ),
    (
        "gdbus",
        &[
            "call",
            "--session",
            "--dest=org.freedesktop.portal.Desktop",
            "--object-path=/org/freedesktop/portal/desktop",
            "--method=org.freedesktop.portal.Settings.Read",
            "org.freedesktop.appearance",
            "color-scheme",
        ],
    ),
];

/// Query of the colour scheme that the desktop prefers.
#[derive(Default)]
pub struct SchemeQuery {
    path: Option<OsString>,
    /// Program that calls the portal, its index in [`CALLS`], and the time by which it has to end.
    running: Option<(Child, usize, Instant)>,
}

impl SchemeQuery {
    /// Creates the query. `path`: search path of the programs; `None`: the search path of this process.
    pub fn new(path: Option<OsString>) -> SchemeQuery {
        SchemeQuery { path, running: None }
    }

    /// Begins the query, unless it is in progress. Returns false if no program can be started.
    pub fn begin(&mut self) -> bool {
        self.running.is_some() || self.start(0)
    }

    /// Starts the first program at or after an index that is installed.
    fn start(&mut self, from: usize) -> bool {
        for (index, (program, arguments)) in CALLS.iter().enumerate().skip(from) {
            let mut command = Command::new(program);
            command
                .args(*arguments)
                .env("LC_ALL", "C")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            if let Some(path) = &self.path {
                command.env("PATH", path);
            }
            if let Ok(child) = command.spawn() {
                self.running = Some((child, index, Instant::now() + TIMEOUT));
                return true;
            }
        }
        false
    }

    /// Returns the time of the next check for the reply; `None` if no query is in progress.
    pub fn due(&self) -> Option<Instant> {
        self.running.as_ref().map(|_| Instant::now() + PAUSE)
    }

    /// Returns the reply once it is there. Its value is `None` if the desktop has no preference, or no portal.
    pub fn take(&mut self) -> Option<Option<ColorScheme>> {
        let (child, index, deadline) = self.running.as_mut()?;
        let index = *index;
        let status = match child.try_wait() {
            Ok(None) if Instant::now() < *deadline => return None,
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                None
            }
            Ok(Some(status)) => Some(status),
            Err(_) => None,
        };
        let mut text = String::new();
        if let Some(output) = &mut child.stdout {
            let _ = output.read_to_string(&mut text);
        }
        self.running = None;
        match status {
            Some(status) if status.success() => Some(parse(&text)),
            // The first program may be installed, but not reach the portal.
            Some(_) if self.start(index + 1) => None,
            _ => Some(None),
        }
    }
}

impl Drop for SchemeQuery {
    fn drop(&mut self) {
        if let Some((child, ..)) = &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads the reply: `v v u 1` of busctl, or `(<<uint32 1>>,)` of gdbus.
fn parse(text: &str) -> Option<ColorScheme> {
    let digits = text.trim().trim_end_matches(['>', ',', ')']);
    match digits.rsplit(' ').next() {
        Some("1") => Some(ColorScheme::Dark),
        Some("2") => Some(ColorScheme::Light),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::fake_programs::script;
    use std::thread;

    /// Runs a query with programs of these scripts.
    fn query(scripts: &[(&str, &str)]) -> Option<ColorScheme> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in scripts {
            script(folder.path(), name, text);
        }
        let mut query = SchemeQuery::new(Some(folder.path().into()));
        if !query.begin() {
            return None;
        }
        loop {
            if let Some(reply) = query.take() {
                return reply;
            }
            thread::park_timeout(PAUSE);
        }
    }

    #[test]
    fn the_wish_is_that_of_the_first_portal_that_replies() {
        let dark = Some(ColorScheme::Dark);
        assert_eq!(query(&[]), None);
        assert_eq!(query(&[("busctl", "echo 'v v u 1'")]), dark);
        assert_eq!(query(&[("gdbus", "echo '(<<uint32 1>>,)'")]), dark);
        assert_eq!(
            query(&[("busctl", "exit 1"), ("gdbus", "echo '(<<uint32 1>>,)'")]),
            dark
        );
        assert_eq!(query(&[("busctl", "echo 'v v u 2'")]), Some(ColorScheme::Light));
        assert_eq!(query(&[("busctl", "echo 'v v u 0'"), ("gdbus", "exit 1")]), None);
        assert_eq!(query(&[("busctl", "exit 1"), ("gdbus", "exit 1")]), None);
    }

    #[test]
    fn replies_are_parsed() {
        for (text, expected) in [
            ("v v u 1\n", Some(ColorScheme::Dark)),
            ("(<<uint32 2>>,)\n", Some(ColorScheme::Light)),
            ("(<<uint32 0>>,)\n", None),
            ("(<<uint32 11>>,)\n", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
