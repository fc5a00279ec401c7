//! The access-log format `dev`: a short line for the terminal of a developer.

use std::io::Write as _;

use super::record::Record;
use super::stamp::Stamps;
use super::{escape, number};

/// Escape sequence of a terminal that ends colours.
const RESET: &[u8] = b"\x1B[0m";
/// Escape sequence of a terminal that begins dim text.
const DIM: &[u8] = b"\x1B[2m";

/// Appends `13:55:36  200  GET    /path  1.2 ms  3.4 kB`, without a newline. An unknown status is `000`, and an unknown
/// duration is left out.
pub(super) fn render(colour: bool, stamps: &Stamps, record: &Record<'_>, out: &mut Vec<u8>) {
    let paint = |style: &'static [u8]| if colour { style } else { b"" };
    let (dim, reset) = (paint(DIM), paint(RESET));
    out.extend_from_slice(dim);
    // The time of day in `2000-10-10T13:55:36-07:00`.
    out.extend_from_slice(&stamps.rfc3339[11..19]);
    out.extend_from_slice(reset);
    out.extend_from_slice(b"  ");
    out.extend_from_slice(paint(style(record.status)));
    out.extend_from_slice(&number::status(record.status));
    out.extend_from_slice(reset);
    out.extend_from_slice(b"  ");
    let start = out.len();
    escape::word(out, if record.method.is_empty() { b"-" } else { record.method });
    // Pads the method to the width of its column.
    out.resize(out.len().max(start + METHOD_WIDTH), b' ');
    out.push(b' ');
    escape::word(out, if record.target.is_empty() { b"-" } else { record.target });
    out.extend_from_slice(dim);
    if let Some(micros) = record.duration_us {
        out.extend_from_slice(b"  ");
        duration(micros, out);
    }
    out.extend_from_slice(b"  ");
    size(record.sent_bytes, out);
    out.extend_from_slice(reset);
}

/// Width of the column of the method: the length of `DELETE`.
const METHOD_WIDTH: usize = 6;

/// Returns the colour of a status.
fn style(status: u16) -> &'static [u8] {
    match status {
        200..=299 => b"\x1B[32m",
        300..=399 => b"\x1B[36m",
        400..=499 => b"\x1B[33m",
        500.. => b"\x1B[1;31m",
        _ => DIM,
    }
}

/// Appends a duration in milliseconds or, from one second on, in seconds.
fn duration(micros: u64, out: &mut Vec<u8>) {
    // Errors are ignored, because writing to memory does not fail.
    let _ = match micros {
        0..10_000 => write!(out, "{}.{} ms", micros / 1_000, micros / 100 % 10),
        10_000..1_000_000 => write!(out, "{} ms", micros / 1_000),
        _ => write!(out, "{}.{:02} s", micros / 1_000_000, micros / 10_000 % 100),
    };
}

/// Appends a number of bytes in decimal units.
fn size(bytes: u64, out: &mut Vec<u8>) {
    let _ = match bytes {
        0..1_000 => write!(out, "{bytes} B"),
        1_000..1_000_000 => write!(out, "{}.{} kB", bytes / 1_000, bytes / 100 % 10),
        1_000_000..1_000_000_000 => write!(out, "{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
        _ => write!(out, "{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    };
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn line(colour: bool, record: &Record<'_>) -> String {
        let mut out = Vec::new();
        render(colour, &Stamps::new(TimeZone::UTC, 971_186_136_789), record, &mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn lines_have_status_method_path_duration_and_size() {
        let record = Record {
            client: "127.0.0.1",
            user: None,
            method: b"GET",
            target: b"/a?b",
            version: "HTTP/1.1",
            tls: None,
            status: 200,
            received_bytes: 0,
            sent_bytes: 0,
            referer: None,
            user_agent: None,
            host: b"x",
            upstream: None,
            upstream_us: None,
            cache_status: "",
            duration_us: None,
        };
        for (status, micros, bytes, expected) in [
            (200, Some(940), 12, "13:55:36  200  GET    /a?b  0.9 ms  12 B"),
            (404, Some(12_345), 3_456, "13:55:36  404  GET    /a?b  12 ms  3.4 kB"),
            (
                500,
                Some(2_345_678),
                3_456_789,
                "13:55:36  500  GET    /a?b  2.34 s  3.4 MB",
            ),
            (0, None, 5_000_000_000, "13:55:36  000  GET    /a?b  5.0 GB"),
        ] {
            let record = Record {
                status,
                duration_us: micros,
                sent_bytes: bytes,
                ..record
            };
            assert_eq!(line(false, &record), expected);
        }
        let coloured = line(true, &Record { status: 404, ..record });
        assert!(coloured.contains("\x1B[33m404\x1B[0m"), "{coloured:?}");
        // Text of a client cannot control the terminal.
        let hostile = Record {
            method: b"",
            target: b"/\x1B[2J\n",
            ..record
        };
        let shown = line(true, &hostile);
        assert!(!shown.contains("\x1B[2J") && !shown.contains('\n'), "{shown:?}");
    }
}
