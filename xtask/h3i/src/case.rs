//! Cases: actions of the client, and the reaction that a standard requires.

use crate::actions::{CONTROL, open, settings};
use crate::error_code::ErrorCode;
use h3i::actions::h3::Action;

/// One connection to the server. It must use the stream [`REQUEST`](crate::actions::REQUEST), unless the server has to
/// close the connection.
pub struct Case {
    pub name: &'static str,
    /// Section of the standard that requires the reaction.
    pub rule: &'static str,
    pub actions: Vec<Action>,
    pub expected: Expected,
}

/// Reaction of the server.
#[derive(Clone, Debug)]
pub enum Expected {
    /// A complete response, and further requests are served. A malformed request may get one too (RFC 9114 §4.1.2).
    Response { status: u16, body: Option<String> },
    /// The server resets the request stream with this code, and further requests are served.
    StreamError(ErrorCode),
    /// The server closes the connection with this code.
    ConnectionError(ErrorCode),
}

/// Reaction to a malformed request that the server resets.
pub const MALFORMED: Expected = Expected::StreamError(ErrorCode::MessageError);
/// Reaction to a frame that its stream or state does not allow.
pub const UNEXPECTED: Expected = Expected::ConnectionError(ErrorCode::FrameUnexpected);

impl Case {
    /// Creates a case whose control stream is open and has sent SETTINGS.
    pub fn new(name: &'static str, rule: &'static str, actions: Vec<Action>, expected: Expected) -> Case {
        let mut all = vec![open(CONTROL, h3i::HTTP3_CONTROL_STREAM_TYPE_ID), settings(&[])];
        all.extend(actions);
        Case::without_control_stream(name, rule, all, expected)
    }

    /// Creates a case whose actions open the control stream themselves, or do not open it.
    pub fn without_control_stream(
        name: &'static str,
        rule: &'static str,
        actions: Vec<Action>,
        expected: Expected,
    ) -> Case {
        Case {
            name,
            rule,
            actions,
            expected,
        }
    }
}

impl Expected {
    /// A response with this status and any body.
    pub fn status(status: u16) -> Expected {
        Expected::Response { status, body: None }
    }

    /// A response with status 200 and this body.
    pub fn body(body: impl Into<String>) -> Expected {
        Expected::Response {
            status: 200,
            body: Some(body.into()),
        }
    }
}
