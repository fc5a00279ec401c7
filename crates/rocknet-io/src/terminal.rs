//! Standard streams: terminal detection, and reading lines.

#[cfg(unix)]
mod no_echo;
#[cfg(not(unix))]
#[path = "terminal/no_echo_portable.rs"]
mod no_echo;

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, IsTerminal, Read};

pub use no_echo::read_without_echo;

/// A standard stream of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardStream {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Returns whether the stream is a terminal.
pub fn is_terminal(stream: StandardStream) -> bool {
    match stream {
        StandardStream::Input => io::stdin().is_terminal(),
        StandardStream::Output => io::stdout().is_terminal(),
        StandardStream::Error => io::stderr().is_terminal(),
    }
}

/// Returns whether to write colour to the stream: true if the stream is a terminal that supports colour, and `NO_COLOR`
/// is unset or empty.
pub fn shows_colour(stream: StandardStream) -> bool {
    colour(
        is_terminal(stream),
        env::var_os("NO_COLOR").as_deref(),
        env::var_os("TERM").as_deref(),
    )
}

/// Reads a line without its line ending; the line is empty at the end of the input. A line longer than `max_bytes` is
/// cut to `max_bytes + 1` bytes, so that the caller can detect it. The rest of the line may remain in the input.
///
/// # Errors
///
/// Fails if reading does.
pub fn read_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(max_bytes + 2);
    // A line of `max_bytes` is read with its line ending, which can have two bytes.
    input.take(max_bytes as u64 + 2).read_until(b'\n', &mut line)?;
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        line.pop_if(|byte| *byte == b'\r');
    }
    line.truncate(max_bytes + 1);
    Ok(line)
}

/// Returns whether to write colour. `terminal` is true if the stream is a terminal; `no_color` and `term` are the
/// values of `NO_COLOR` and `TERM`. A terminal supports colour unless `TERM` is `dumb`.
fn colour(terminal: bool, no_color: Option<&OsStr>, term: Option<&OsStr>) -> bool {
    terminal && no_color.is_none_or(OsStr::is_empty) && term.is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolated_test::in_own_process;

    #[test]
    fn colour_is_written_only_to_terminals_that_support_and_permit_it() {
        for (terminal, no_color, term, expected) in [
            (true, None, Some("xterm-256color"), true),
            (true, None, None, true),
            (true, Some(""), Some("xterm"), true),
            (true, Some("1"), Some("xterm"), false),
            (true, None, Some("dumb"), false),
            (false, None, Some("xterm"), false),
        ] {
            let (no_color, term) = (no_color.map(OsStr::new), term.map(OsStr::new));
            assert_eq!(
                colour(terminal, no_color, term),
                expected,
                "{terminal} {no_color:?} {term:?}"
            );
        }
    }

    #[test]
    fn lines_are_read_without_their_end_and_have_a_bound() {
        // Input, maximum number of bytes, and the line that is read.
        for (input, max, expected) in [
            ("ab\ncd", 4, "ab"),
            ("ab\r\n", 4, "ab"),
            ("ab", 4, "ab"),
            ("", 4, ""),
            ("\n", 4, ""),
            ("abcd\n", 4, "abcd"),
            ("abcde\n", 4, "abcde"),
            ("abcdefgh\n", 4, "abcde"),
            ("a\rb\n", 4, "a\rb"),
        ] {
            assert_eq!(
                read_line(&mut input.as_bytes(), max).unwrap(),
                expected.as_bytes(),
                "{input:?}"
            );
        }
    }

    #[test]
    fn a_pipe_is_no_terminal() {
        if !in_own_process("terminal::tests::a_pipe_is_no_terminal") {
            return;
        }
        assert!(
            ![StandardStream::Input, StandardStream::Output, StandardStream::Error]
                .into_iter()
                .any(is_terminal)
        );
    }
}
