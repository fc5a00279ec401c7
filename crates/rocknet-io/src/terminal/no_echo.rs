//! Reads a line that is typed at the terminal without showing it.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::read_line;

/// Reads a line from standard input, which is a terminal, without its end. What is typed is not shown; the end of the line
/// is. Longer lines than `max_bytes` are cut one byte after it, so that the caller sees them.
pub fn read_without_echo(max_bytes: usize) -> io::Result<Vec<u8>> {
    let with_echo = tcgetattr(io::stdin())?;
    let mut without_echo = with_echo.clone();
    without_echo.local_modes.remove(LocalModes::ECHO);
    without_echo.local_modes.insert(LocalModes::ECHONL);
    // What was typed before the prompt is dropped, because it was shown.
    tcsetattr(io::stdin(), OptionalActions::Flush, &without_echo)?;
    let _restore = RestoreEcho(with_echo);
    read_line(&mut io::stdin().lock(), max_bytes)
}

/// Shows again what is typed, when it is dropped.
struct RestoreEcho(Termios);

impl Drop for RestoreEcho {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
