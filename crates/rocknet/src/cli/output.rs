//! Output of commands: text on standard output; errors, warnings and reports on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use rocknet_config::Report;
use rocknet_io::terminal::{StandardStream, shows_colour};

/// Writes to standard output. Errors are ignored, because the reader of a pipe may have closed it
/// (`rocknet man | head`).
pub fn print(text: impl Display) {
    let _ = try_print(text);
}

/// Writes to standard output, for commands that print until they are ended.
///
/// # Errors
///
/// Returns the error of standard output, `BrokenPipe` if its reader has closed it.
pub fn try_print(text: impl Display) -> io::Result<()> {
    let mut output = io::stdout().lock();
    write!(output, "{text}").and_then(|()| output.flush())
}

/// Prints an error on standard error.
pub fn print_error(message: impl Display) {
    note("error", "\x1b[1;31m", message);
}

/// Prints a warning on standard error.
pub fn print_warning(message: impl Display) {
    note("warning", "\x1b[1;33m", message);
}

/// Prints a report on standard error, with colour on a terminal.
pub fn print_report(report: &Report) {
    let _ = write!(
        io::stderr().lock(),
        "{}",
        report.display(shows_colour(StandardStream::Error))
    );
}

/// Prints the details of an error on standard error, before the error.
pub fn print_details(details: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", details.trim_end());
}

/// Prints `word`, in the style of a terminal escape sequence if standard error shows colour, and the message.
fn note(word: &str, style: &str, message: impl Display) {
    let (on, off) = if shows_colour(StandardStream::Error) {
        (style, "\x1b[0m")
    } else {
        ("", "")
    };
    let _ = writeln!(io::stderr().lock(), "{on}{word}{off}: {message}");
}
