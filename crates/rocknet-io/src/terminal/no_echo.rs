//! Reads a line from the terminal without echo.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::read_line;

/// Reads a line without its line ending from standard input, which has to be a terminal. Only the line ending is
/// echoed. A line longer than `max_bytes` is cut to `max_bytes + 1` bytes, so that the caller notices.
///
/// # Errors
///
/// Fails if the mode of the terminal cannot be changed, or if reading fails.
pub fn read_without_echo(max_bytes: usize) -> io::Result<Vec<u8>> {
    let with_echo = tcgetattr(io::stdin())?;
    let mut without_echo = with_echo.clone();
    without_echo.local_modes.remove(LocalModes::ECHO);
    without_echo.local_modes.insert(LocalModes::ECHONL);
    // Discards input that was typed before this call, because the terminal has echoed it.
    tcsetattr(io::stdin(), OptionalActions::Flush, &without_echo)?;
    let _restore = RestoreEcho(with_echo);
    read_line(&mut io::stdin().lock(), max_bytes)
}

/// Restores this mode of the terminal on drop.
struct RestoreEcho(Termios);

impl Drop for RestoreEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
