//! Reads a line that is typed at the terminal without showing it.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::read_line;

/// Reads a line from standard input, which is a terminal, without its end. What is typed is not shown; the end of the line
/// is. Longer lines than `max_bytes` are cut one byte after it, so that the caller sees them.
pub fn read_hidden(max_bytes: usize) -> io::Result<Vec<u8>> {
    let shown = tcgetattr(io::stdin())?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    hidden.local_modes.insert(LocalModes::ECHONL);
    // What was typed before the prompt is dropped, because it was shown.
    tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
    let _restored = Restored(shown);
    read_line(&mut io::stdin().lock(), max_bytes)
}

/// Shows again what is typed, when it is dropped.
struct Restored(Termios);

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
