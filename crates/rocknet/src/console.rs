//! Reads the terminal commands of a running server from standard input, and renders their output.
//!
//! Commands are read if standard input is a terminal. The option `--console` reads them from any standard input, for
//! programs that control a server through a pipe.

use std::io::{self, BufRead, BufReader, Read};
use std::thread;
use std::time::Duration;

use rocknet::server::Server;
use rocknet_control::{Command, SiteList, UnknownCommand};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// A line of the input: a command, or other text.
#[derive(Debug, PartialEq, Eq)]
pub enum ConsoleLine {
    Command(Command),
    Unknown(UnknownCommand),
}

/// Reads lines and passes each to `handle`, until the input ends or fails, or `handle` returns false. Empty lines are
/// skipped.
pub fn read(input: impl Read, mut handle: impl FnMut(ConsoleLine) -> bool) {
    let mut input = BufReader::with_capacity(MAX_LINE_BYTES, input);
    let mut line = Vec::with_capacity(MAX_LINE_BYTES);
    loop {
        line.clear();
        match input.by_ref().take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') && skip_line(&mut input).is_err() {
            return;
        }
        let continues = match Command::parse(&String::from_utf8_lossy(&line)) {
            Ok(None) => true,
            Ok(Some(command)) => handle(ConsoleLine::Command(command)),
            Err(unknown) => handle(ConsoleLine::Unknown(unknown)),
        };
        if !continues {
            return;
        }
    }
}

/// Returns the output of a command that changes nothing. The output of `reload` and `quit` is empty, because the main
/// loop handles them.
pub fn render(command: Command, server: &Server) -> String {
    match command {
        Command::Status => server.status().to_string(),
        Command::Sites => SiteList(&server.sites()).to_string(),
        Command::Help => Command::help(),
        Command::Reload | Command::Quit => String::new(),
    }
}

/// Discards the remainder of a line that is too long to be a command.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        let (length, ended) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(end) => (end + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        input.consume(length);
        if ended {
            return Ok(());
        }
    }
}

/// Standard input, read only while this process is in the foreground. If a background process reads from its terminal,
/// the kernel stops the whole process (SIGTTIN), including its workers.
pub struct TerminalInput;

impl Read for TerminalInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let input = io::stdin();
        loop {
            // Waits until input is ready, so that the job state is checked immediately before the read. A signal
            // interrupts `poll`, which is then repeated. Other errors are ignored, because reading may still work.
            if poll(&mut [PollFd::new(&input, PollFlags::IN)], None) == Err(Errno::INTR) {
                continue;
            }
            if in_background() {
                thread::sleep(BACKGROUND_POLL_INTERVAL);
                continue;
            }
            match rustix::io::read(&input, &mut *buffer) {
                Err(Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}

/// Returns true if another job is in the foreground of the terminal, and false if standard input is not a terminal.
fn in_background() -> bool {
    rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|foreground| foreground != rustix::process::getpgrp())
}

/// Maximum length of a line in bytes, far longer than any command.
const MAX_LINE_BYTES: usize = 1024;

/// Interval at which a background job checks whether it is in the foreground again.
const BACKGROUND_POLL_INTERVAL: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_commands() {
        /// Checks the lines of an input: the command of each, or `None` for a line that is not a command.
        fn check(input: &[u8], expected: &[Option<Command>]) {
            let mut lines = Vec::new();
            read(input, |one| {
                lines.push(match one {
                    ConsoleLine::Command(command) => Some(command),
                    ConsoleLine::Unknown(_) => None,
                });
                true
            });
            assert_eq!(lines, expected, "{:?}", String::from_utf8_lossy(input));
        }
        check(b"", &[]);
        check(b"\n\r\n \n", &[]);
        check(
            b"status\nSITES\r\nquit",
            &[Some(Command::Status), Some(Command::Sites), Some(Command::Quit)],
        );
        check(b"dance\n\xff\xfe\nhelp\n", &[None, None, Some(Command::Help)]);
        for length in [
            MAX_LINE_BYTES - 1,
            MAX_LINE_BYTES,
            MAX_LINE_BYTES + 1,
            10 * MAX_LINE_BYTES,
        ] {
            let mut input = vec![b'x'; length];
            check(&input, &[None]);
            input.extend(b"\nhelp\n");
            check(&input, &[None, Some(Command::Help)]);
        }
    }

    #[test]
    fn reading_ends_when_the_handler_stops() {
        let mut count = 0;
        read(&b"help\nhelp\nhelp\n"[..], |_| {
            count += 1;
            count < 2
        });
        assert_eq!(count, 2);
    }
}
