//! The response that a controller builds, validated as it grows so that no malformed response is sent.

use std::sync::Arc;

use rocknet_controller::host::ResponseWriter;
use rocknet_controller::{Level, Refused};
use rocknet_proto::fields::{Field, KnownField};
use rocknet_proto::status::Status;

use super::error::ControllerError;
use crate::response::{FieldList, Response};

/// Maximum number of header fields of a response: far more than a response needs.
const MAX_FIELDS: usize = 256;
/// Maximum bytes of the names and values of all header fields: far more than a response needs.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum bytes of a body that a controller writes as a whole. The server keeps the body in memory until the client
/// has received it. Controllers produce larger bodies in pieces.
pub const MAX_BODY: usize = 16 * 1024 * 1024;
/// Maximum bytes of a log line. Longer lines are truncated.
const MAX_LOG_LINE: usize = 2 * 1024;
/// Maximum number of log lines per request, so that a controller cannot fill the disk.
const MAX_LOG_LINES: u32 = 64;

/// A response under construction. `N` is the type of the controller's name, for the log.
pub struct ResponseBuilder<N = Arc<str>> {
    controller: N,
    status: Option<Status>,
    fields: FieldList,
    /// Number of fields.
    field_count: usize,
    /// Bytes of the names and values of the fields.
    head_size: usize,
    /// Bytes that the controller has written to the body.
    body: Vec<u8>,
    /// The first refusal of a value.
    refused: Option<Refused>,
    /// True once `finish_head` was called. Later changes are refused.
    pub is_head_finished: bool,
    /// Number of log lines of the request.
    log_lines: std::cell::Cell<u32>,
}

impl<N> ResponseBuilder<N> {
    /// Starts a response without status, fields and body.
    pub fn new(controller: N) -> ResponseBuilder<N> {
        ResponseBuilder {
            controller,
            status: None,
            fields: FieldList::default(),
            field_count: 0,
            head_size: 0,
            body: Vec::new(),
            refused: None,
            is_head_finished: false,
            log_lines: std::cell::Cell::new(0),
        }
    }

    /// Returns the response without a body, and the bytes written to the body. Later changes are refused.
    ///
    /// # Errors
    ///
    /// Fails if a value was refused or no status was set.
    pub fn finish_head(&mut self) -> Result<(Response, Vec<u8>), ControllerError> {
        self.is_head_finished = true;
        if let Some(refused) = self.refused {
            return Err(ControllerError::Refused(refused));
        }
        let mut response = Response::new(self.status.ok_or(ControllerError::NoStatus)?);
        response.fields = std::mem::take(&mut self.fields);
        Ok((response, std::mem::take(&mut self.body)))
    }

    /// Records the refusal of a value, unless an earlier one is recorded, and returns `why` as the error.
    fn fail(&mut self, why: Refused) -> Result<(), Refused> {
        self.refused.get_or_insert(why);
        Err(why)
    }
}

impl<N: AsRef<str>> ResponseWriter for ResponseBuilder<N> {
    fn set_status(&mut self, status: u32) -> Result<(), Refused> {
        if self.is_head_finished {
            return Err(Refused::Late);
        }
        // Only final statuses are accepted.
        let status = u16::try_from(status).ok().filter(|status| (200..600).contains(status));
        match status.and_then(Status::new) {
            Some(status) => {
                self.status = Some(status);
                Ok(())
            }
            None => self.fail(Refused::Invalid),
        }
    }

    fn add_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refused> {
        if self.is_head_finished {
            return Err(Refused::Late);
        }
        let field = Field::new(name, value.trim_ascii());
        // The server sets these fields itself, so the response remains valid without them. A malformed value makes the
        // response invalid below.
        if let Some(known) = field.known
            && (known.is_framing() || known == KnownField::Date)
            && field.is_sendable()
        {
            return Err(Refused::NotYours);
        }
        self.field_count += 1;
        self.head_size += name.len() + field.value.len();
        if self.head_size > MAX_HEAD || self.field_count > MAX_FIELDS {
            return self.fail(Refused::TooMuch);
        }
        if !self.fields.add_field(field) {
            return self.fail(Refused::Invalid);
        }
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), Refused> {
        if self.is_head_finished {
            return Err(Refused::Late);
        }
        if self.body.len() + data.len() > MAX_BODY {
            return self.fail(Refused::TooMuch);
        }
        self.body.extend_from_slice(data);
        Ok(())
    }

    fn mark_invalid(&mut self) {
        let _ = self.fail(Refused::Invalid);
    }

    fn log(&self, level: Level, line: &[u8]) {
        let log_lines = self.log_lines.get();
        if log_lines > MAX_LOG_LINES {
            return;
        }
        self.log_lines.set(log_lines + 1);
        if log_lines == MAX_LOG_LINES {
            tracing::warn!(controller = %self.controller.as_ref(), "more than {MAX_LOG_LINES} log lines for one request; further lines are dropped");
            return;
        }
        log_line(level, self.controller.as_ref(), line);
    }
}

/// Logs a line of a controller.
fn log_line(level: Level, controller: &str, line: &[u8]) {
    let line = String::from_utf8_lossy(&line[..line.len().min(MAX_LOG_LINE)]);
    match level {
        Level::Error => tracing::error!(%controller, "{line}"),
        Level::Warn => tracing::warn!(%controller, "{line}"),
        Level::Debug => tracing::debug!(%controller, "{line}"),
        _ => tracing::info!(%controller, "{line}"),
    }
}

/// Logs a line of a library that belongs to no request.
pub fn log(level: Level, line: &[u8]) {
    log_line(level, "-", line);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the result of a change, and the status of the finished response. `status`: `None` if the response cannot
    /// be sent.
    #[track_caller]
    fn check(
        change: impl Fn(&mut ResponseBuilder<&str>) -> Result<(), Refused>,
        expected: Result<(), Refused>,
        status: Option<u16>,
    ) {
        let mut builder = ResponseBuilder::new("x");
        builder.set_status(200).expect("a good status");
        assert_eq!(change(&mut builder), expected);
        let found = builder.finish_head().ok().map(|(response, _)| response.status.code());
        assert_eq!(found, status);
        assert_eq!(builder.write(b"x"), Err(Refused::Late));
        assert_eq!(builder.set_status(200), Err(Refused::Late));
        assert_eq!(builder.add_field(b"a", b"b"), Err(Refused::Late));
    }

    #[test]
    fn statuses_and_fields_are_validated() {
        let bad = Err(Refused::Invalid);
        // 65,736 is 200 in its lower 16 bits.
        for status in [0, 100, 101, 199, 600, 65_736, u32::MAX] {
            check(|builder| builder.set_status(status), bad, None);
        }
        for status in [201, 304, 599] {
            check(|builder| builder.set_status(status.into()), Ok(()), Some(status));
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
            check(|builder| builder.add_field(name, value), bad, None);
        }
        // The server sets these fields itself, so the response can be sent without them.
        for name in ["Content-Length", "transfer-encoding", "CONNECTION", "Date"] {
            check(
                |builder| builder.add_field(name.as_bytes(), b"1"),
                Err(Refused::NotYours),
                Some(200),
            );
        }
        check(|builder| builder.add_field(b"a", b" x\t"), Ok(()), Some(200));
    }

    #[test]
    fn limits_are_exact() {
        let too_much = Err(Refused::TooMuch);
        // The name of the field has one byte.
        let head =
            |size: usize| move |builder: &mut ResponseBuilder<&str>| builder.add_field(b"a", &vec![b'x'; size - 1]);
        check(head(MAX_HEAD), Ok(()), Some(200));
        check(head(MAX_HEAD + 1), too_much, None);
        let fields = |count: usize| {
            move |builder: &mut ResponseBuilder<&str>| (0..count).try_for_each(|_| builder.add_field(b"a", b"b"))
        };
        check(fields(MAX_FIELDS), Ok(()), Some(200));
        check(fields(MAX_FIELDS + 1), too_much, None);
        let body = |size: usize| move |builder: &mut ResponseBuilder<&str>| builder.write(&vec![0; size]);
        check(body(MAX_BODY), Ok(()), Some(200));
        check(body(MAX_BODY + 1), too_much, None);
    }
}
