//! An answer while a controller makes it: checked as it comes, so that nothing leaves that could not have been meant.

use std::sync::Arc;

use rocknet_controller::host::ResponseWriter;
use rocknet_controller::{Level, Refused};
use rocknet_proto::fields::{Field, Known};
use rocknet_proto::status::Status;

use super::trouble::Trouble;
use crate::response::{FieldList, Response};

/// Fields of one answer, and bytes of their names and values: more than any client takes.
const MAX_FIELDS: usize = 256;
const MAX_HEAD: usize = 64 * 1024;
/// Bytes of a body that is written whole. All of it is held until the client has it; what is larger is given in pieces.
pub const MAX_BODY: usize = 16 * 1024 * 1024;
/// Bytes of one line in the log, and lines of one request: a controller that complains of every byte is not to fill the
/// disk.
const MAX_LINE: usize = 2 * 1024;
const MAX_LINES: u32 = 64;

/// `N` is who makes it, for the log.
pub struct Draft<N = Arc<str>> {
    controller: N,
    status: Option<Status>,
    fields: FieldList,
    /// How many of them there are, and their bytes.
    count: usize,
    head: usize,
    body: Vec<u8>,
    /// What could not be sent; the first of all.
    refused: Option<Refused>,
    /// The head has left.
    pub has_begun: bool,
    lines: std::cell::Cell<u32>,
}

impl<N> Draft<N> {
    pub fn new(controller: N) -> Draft<N> {
        Draft {
            controller,
            status: None,
            fields: FieldList::default(),
            count: 0,
            head: 0,
            body: Vec::new(),
            refused: None,
            has_begun: false,
            lines: std::cell::Cell::new(0),
        }
    }

    /// The answer without its body, and what was written of that. Nothing more is taken from here on.
    pub fn begin(&mut self) -> Result<(Response, Vec<u8>), Trouble> {
        self.has_begun = true;
        if let Some(refused) = self.refused {
            return Err(Trouble::Refused(refused));
        }
        let mut response = Response::new(self.status.ok_or(Trouble::NoStatus)?);
        response.fields = std::mem::take(&mut self.fields);
        Ok((response, std::mem::take(&mut self.body)))
    }

    fn spoil(&mut self, why: Refused) -> Result<(), Refused> {
        self.refused.get_or_insert(why);
        Err(why)
    }
}

impl<N: AsRef<str>> ResponseWriter for Draft<N> {
    fn set_status(&mut self, status: u32) -> Result<(), Refused> {
        if self.has_begun {
            return Err(Refused::Late);
        }
        let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status));
        match status.and_then(Status::new) {
            Some(status) => {
                self.status = Some(status);
                Ok(())
            }
            None => self.spoil(Refused::Invalid),
        }
    }

    fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        if self.has_begun {
            return Err(Refused::Late);
        }
        let field = Field::new(name, value.trim_ascii());
        if let Some(known) = field.known
            && (known.is_framing() || known == Known::Date)
            && field.is_sendable()
        {
            return Err(Refused::NotYours);
        }
        self.count += 1;
        self.head += name.len() + field.value.len();
        if self.head > MAX_HEAD || self.count > MAX_FIELDS {
            return self.spoil(Refused::TooMuch);
        }
        if !self.fields.add_field(field) {
            return self.spoil(Refused::Invalid);
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        if self.has_begun {
            return Err(Refused::Late);
        }
        if self.body.len() + data.len() > MAX_BODY {
            return self.spoil(Refused::TooMuch);
        }
        self.body.extend_from_slice(data);
        Ok(())
    }

    fn mark_invalid(&mut self) {
        let _ = self.spoil(Refused::Invalid);
    }

    fn log(&self, level: Level, line: &[u8]) {
        let lines = self.lines.get();
        if lines > MAX_LINES {
            return;
        }
        self.lines.set(lines + 1);
        if lines == MAX_LINES {
            tracing::warn!(controller = %self.controller.as_ref(), "more than {MAX_LINES} lines for one request; the rest is left out");
            return;
        }
        tell(level, self.controller.as_ref(), line);
    }
}

/// A line of a controller's own.
fn tell(level: Level, controller: &str, line: &[u8]) {
    let line = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE)]);
    match level {
        Level::Error => tracing::error!(%controller, "{line}"),
        Level::Warn => tracing::warn!(%controller, "{line}"),
        Level::Debug => tracing::debug!(%controller, "{line}"),
        _ => tracing::info!(%controller, "{line}"),
    }
}

/// A line that belongs to no request.
pub fn log(level: Level, line: &[u8]) {
    tell(level, "-", line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the draft says to each, and the status that comes of all.
    #[track_caller]
    fn check(work: impl Fn(&mut Draft<&str>) -> Result<(), Refused>, said: Result<(), Refused>, status: Option<u16>) {
        let mut draft = Draft::new("x");
        draft.set_status(200).expect("a good status");
        assert_eq!(work(&mut draft), said);
        let found = draft.begin().ok().map(|(response, _)| response.status.code());
        assert_eq!(found, status);
        assert_eq!(draft.write(b"x"), Err(Refused::Late));
        assert_eq!(draft.set_status(200), Err(Refused::Late));
        assert_eq!(draft.add_field(b"a", b"b"), Err(Refused::Late));
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let bad = Err(Refused::Invalid);
        for status in [0, 100, 101, 199, 600, 65_736, u32::MAX] {
            check(|draft| draft.set_status(status), bad, None);
        }
        for status in [201, 304, 599] {
            check(|draft| draft.set_status(status.into()), Ok(()), Some(status));
        }
        for (name, value) in [
            (&b""[..], &b"x"[..]),
            (b"a b", b"x"),
            (b"a:", b"x"),
            (b"a\0", b"x"),
            (b"a\r\nb", b"x"),
            (b"a", b"x\r\nb: c"),
            (b"a", b"x\0"),
            (b"a", b"\x01"),
        ] {
            check(|draft| draft.add_field(name, value), bad, None);
        }
        for name in ["Content-Length", "transfer-encoding", "CONNECTION", "Date"] {
            check(
                |draft| draft.add_field(name.as_bytes(), b"1"),
                Err(Refused::NotYours),
                Some(200),
            );
        }
        check(|draft| draft.add_field(b"a", b" x\t"), Ok(()), Some(200));
    }

    #[test]
    fn bounds_are_met_from_both_sides() {
        let much = Err(Refused::TooMuch);
        let head = |size: usize| move |draft: &mut Draft<&str>| draft.add_field(b"a", &vec![b'x'; size - 1]);
        check(head(MAX_HEAD), Ok(()), Some(200));
        check(head(MAX_HEAD + 1), much, None);
        let fields =
            |count: usize| move |draft: &mut Draft<&str>| (0..count).try_for_each(|_| draft.add_field(b"a", b"b"));
        check(fields(MAX_FIELDS), Ok(()), Some(200));
        check(fields(MAX_FIELDS + 1), much, None);
        let body = |size: usize| move |draft: &mut Draft<&str>| draft.write(&vec![0; size]);
        check(body(MAX_BODY), Ok(()), Some(200));
        check(body(MAX_BODY + 1), much, None);
    }
}
