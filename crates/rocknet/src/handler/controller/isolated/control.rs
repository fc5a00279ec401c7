//! Messages between the server and the process of a library that do not belong to a request.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rocknet_controller::Level;
use rocknet_io::fd_channel::{Blocking, FdChannel};

/// Maximum size of a message in bytes, far more than a name or a log line needs.
const MAX_MESSAGE: usize = 16 * 1024;
/// Maximum bytes of a text in a message. Longer texts are truncated.
const MAX_TEXT: usize = 8 * 1024;

/// Message from the server to the process. Each message carries a descriptor.
#[derive(Debug)]
pub enum ChildCommand {
    /// A copy of the library, and the path of its file for error messages.
    Load(OwnedFd, String),
    /// A connection for requests.
    Serve(OwnedFd),
}

/// Message from the process to the server.
#[derive(Debug, PartialEq, Eq)]
pub enum ChildReport {
    /// A controller of the library.
    Controller(ControllerEntry),
    /// All controllers have been reported, and requests may follow.
    Ready,
    /// The library cannot be loaded for this reason.
    Refused(String),
    /// A log line that belongs to no request.
    Log(Level, Vec<u8>),
}

/// Description of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerEntry {
    /// Name of the controller.
    pub name: String,
    /// True if the controller receives the request body in pieces.
    pub takes: bool,
    /// True if the controller produces the response body in pieces.
    pub gives: bool,
}

// The first byte of each message is one of these kinds.
const LOAD: u8 = 1;
const SERVE: u8 = 2;
const CONTROLLER: u8 = 3;
const READY: u8 = 4;
const REFUSED: u8 = 5;
const LOG: u8 = 6;

/// Sends [`ChildCommand::Load`]. Fails with `WouldBlock` while the buffer of the channel is full.
pub fn load(control: &FdChannel, library: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    send(control, &[LOAD], name.as_bytes(), Some(library), Blocking::No)
}

/// Sends [`ChildCommand::Serve`]. Fails with `WouldBlock` while the buffer of the channel is full.
pub fn serve(control: &FdChannel, connection: BorrowedFd<'_>) -> io::Result<()> {
    send(control, &[SERVE], b"", Some(connection), Blocking::No)
}

/// Waits for the next message of the server. Returns `None` once the server has closed the channel.
pub fn command(control: &FdChannel) -> io::Result<Option<ChildCommand>> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let Some(message) = control.recv(&mut buffer, Blocking::Yes)? else {
        return Ok(None);
    };
    match (&buffer[..message.size], message.fd) {
        ([LOAD, name @ ..], Some(library)) => Ok(Some(ChildCommand::Load(
            library,
            String::from_utf8_lossy(name).into_owned(),
        ))),
        ([SERVE], Some(connection)) => Ok(Some(ChildCommand::Serve(connection))),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

impl ChildReport {
    /// Sends the report. Blocks while the buffer of the channel is full.
    pub fn send(&self, control: &FdChannel) -> io::Result<()> {
        let (head, text): (&[u8], &[u8]) = match self {
            ChildReport::Controller(ControllerEntry { name, takes, gives }) => {
                (&[CONTROLLER, u8::from(*takes), u8::from(*gives)], name.as_bytes())
            }
            ChildReport::Ready => (&[READY], b""),
            ChildReport::Refused(why) => (&[REFUSED], why.as_bytes()),
            ChildReport::Log(level, line) => (&[LOG, level_number(*level)], line),
        };
        send(control, head, text, None, Blocking::Yes)
    }

    /// Returns the next report without blocking; `None` once the process has closed the channel. Fails with
    /// `WouldBlock` if no report has arrived.
    pub fn recv(control: &FdChannel) -> io::Result<Option<ChildReport>> {
        let mut buffer = vec![0; MAX_MESSAGE];
        let Some(message) = control.recv(&mut buffer, Blocking::No)? else {
            return Ok(None);
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Some(match &buffer[..message.size] {
            [CONTROLLER, takes, gives, name @ ..] => ChildReport::Controller(ControllerEntry {
                name: text(name),
                takes: *takes == 1,
                gives: *gives == 1,
            }),
            [READY] => ChildReport::Ready,
            [REFUSED, why @ ..] => ChildReport::Refused(text(why)),
            [LOG, level, line @ ..] => ChildReport::Log(level_of(*level), line.to_vec()),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }
}

/// Sends a message that consists of `head` and `text`, and passes the descriptor `with`, if there is one. Only the
/// first `MAX_TEXT` bytes of `text` are sent.
fn send(
    control: &FdChannel,
    head: &[u8],
    text: &[u8],
    with: Option<BorrowedFd<'_>>,
    blocking: Blocking,
) -> io::Result<()> {
    let message = [head, &text[..text.len().min(MAX_TEXT)]].concat();
    control.send(&message, with, blocking)
}

/// Returns the number of a log level in a message. `Level` may get further levels, which are sent as info.
fn level_number(level: Level) -> u8 {
    match level {
        Level::Error => 1,
        Level::Warn => 2,
        Level::Debug => 4,
        _ => 3,
    }
}

/// Returns the log level with this number; an unknown number means info.
fn level_of(number: u8) -> Level {
    match number {
        1 => Level::Error,
        2 => Level::Warn,
        4 => Level::Debug,
        _ => Level::Info,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// Returns the channel of the server, and the descriptor of the other end.
    fn pair() -> (FdChannel, OwnedFd) {
        FdChannel::pair().expect("a pair of sockets")
    }

    #[test]
    fn reports_round_trip_and_texts_are_truncated() {
        let (server_end, child_end) = pair();
        let child_end = FdChannel::from(child_end);
        let entry = ControllerEntry {
            name: "hello".into(),
            takes: true,
            gives: false,
        };
        for report in [
            ChildReport::Controller(entry),
            ChildReport::Ready,
            ChildReport::Refused("no".into()),
            ChildReport::Log(Level::Debug, b"line".to_vec()),
        ] {
            report.send(&child_end).expect("room");
            assert_eq!(ChildReport::recv(&server_end).expect("a message"), Some(report));
        }
        ChildReport::Refused("x".repeat(MAX_MESSAGE))
            .send(&child_end)
            .expect("room");
        assert_eq!(
            ChildReport::recv(&server_end).expect("a message"),
            Some(ChildReport::Refused("x".repeat(MAX_TEXT)))
        );
        // An unknown kind, and messages with missing or additional bytes.
        for malformed in [&b"\x63"[..], &[CONTROLLER, 1], &[READY, 1], &[LOG]] {
            child_end.send(malformed, None, Blocking::Yes).expect("room");
            assert!(ChildReport::recv(&server_end).is_err(), "{malformed:?}");
        }
        drop(child_end);
        assert_eq!(ChildReport::recv(&server_end).expect("an end"), None);
    }

    #[test]
    fn commands_carry_their_descriptors() {
        let (server_end, child_end) = pair();
        let child_end = FdChannel::from(child_end);
        load(&server_end, server_end.as_fd(), "l.so").expect("room");
        serve(&server_end, server_end.as_fd()).expect("room");
        assert!(matches!(command(&child_end), Ok(Some(ChildCommand::Load(_, name))) if name == "l.so"));
        assert!(matches!(command(&child_end), Ok(Some(ChildCommand::Serve(_)))));
        server_end.send(&[SERVE], None, Blocking::No).expect("room");
        assert!(command(&child_end).is_err(), "a connection is missing");
        server_end.shut_down();
        assert!(matches!(command(&child_end), Ok(None)));
    }
}
