//! Formats lines of the error log: time, level, message and fields, with colours for terminals.

use std::fmt::{self, Write as _};

use jiff::tz::TimeZone;
use rocknet_config::model::Level;

use super::escape::{self, Printable};
use super::stamp;

/// Escape sequence of a terminal that ends colours.
const RESET: &str = "\x1B[0m";
/// Escape sequence of a terminal that begins dim text.
const DIM: &str = "\x1B[2m";

/// Appends a line with its newline. `fields` are written by [`field`].
pub(super) fn render(
    out: &mut Vec<u8>,
    zone: &TimeZone,
    unix_ms: u64,
    colour: bool,
    level: Level,
    message: &dyn fmt::Display,
    fields: &[u8],
) {
    let stamp = stamp::rfc3339_millis(zone, unix_ms);
    let (name, hue) = match level {
        Level::Error => ("ERROR", "\x1B[1;31m"),
        Level::Warn => ("WARN ", "\x1B[1;33m"),
        Level::Info => ("INFO ", "\x1B[32m"),
        Level::Debug => ("DEBUG", "\x1B[34m"),
        Level::Trace => ("TRACE", "\x1B[35m"),
    };
    if colour {
        for part in [
            DIM.as_bytes(),
            &stamp,
            RESET.as_bytes(),
            b" ",
            hue.as_bytes(),
            name.as_bytes(),
            RESET.as_bytes(),
        ] {
            out.extend_from_slice(part);
        }
    } else {
        out.extend_from_slice(&stamp);
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b' ');
    // Errors are ignored: writing to memory does not fail, and a failing `Display` only leaves its text incomplete.
    let _ = write!(Printable::new(out), "{message}");
    out.extend_from_slice(fields);
    out.push(b'\n');
}

/// Appends ` name=value`, with quotes unless the value is plain.
pub(super) fn field(out: &mut Vec<u8>, colour: bool, name: &str, value: &str) {
    out.push(b' ');
    let (before, after) = if colour { (DIM, RESET) } else { ("", "") };
    for part in [before, name, "=", after] {
        out.extend_from_slice(part.as_bytes());
    }
    if escape::is_bare(value) {
        out.extend_from_slice(value.as_bytes());
    } else {
        out.push(b'"');
        let _ = Printable::within_quotes(out).write_str(value);
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(colour: bool, level: Level, message: &str, fields: &[(&str, &str)]) -> String {
        let mut rendered = Vec::new();
        for (name, value) in fields {
            field(&mut rendered, colour, name, value);
        }
        let mut out = Vec::new();
        render(
            &mut out,
            &TimeZone::UTC,
            971_186_136_789,
            colour,
            level,
            &message,
            &rendered,
        );
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_line_has_time_level_message_and_fields() {
        let stamp = "2000-10-10T13:55:36.789+00:00";
        for (level, message, fields, expected) in [
            (Level::Info, "ready", &[][..], "INFO  ready"),
            (
                Level::Error,
                "no file",
                &[("path", "/a b"), ("status", "404")],
                "ERROR no file path=\"/a b\" status=404",
            ),
            (
                Level::Warn,
                "a\nb\x1B[31m",
                &[("x", "\"\n\""), ("y", "")],
                r#"WARN  a\x0Ab\x1B[31m x="\"\x0A\"" y="""#,
            ),
            (Level::Debug, "é", &[("x", "é")], "DEBUG é x=\"é\""),
            (Level::Trace, "m", &[("x", "a=b")], "TRACE m x=\"a=b\""),
        ] {
            assert_eq!(line(false, level, message, fields), format!("{stamp} {expected}\n"));
        }
    }

    #[test]
    fn escape_sequences_come_only_from_the_log() {
        let coloured = line(true, Level::Error, "m\x1B[5m", &[("x", "\x1B[5m")]);
        assert!(coloured.contains("\x1B[1;31mERROR\x1B[0m m\\x1B[5m"), "{coloured:?}");
        assert!(!coloured.contains("\x1B[5m"), "{coloured:?}");
    }

    #[test]
    fn a_long_value_is_cut() {
        let long = "x y".repeat(escape::MESSAGE_MAX);
        assert!(line(false, Level::Info, &long, &[("v", &long)]).len() < 3 * escape::MESSAGE_MAX);
    }
}
