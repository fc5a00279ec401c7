//! Span: one operation of a trace, with its times and attributes.

use std::time::SystemTime;

use crate::context::{SpanId, TraceId};

/// Role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Request of a client to this server.
    Server,
    /// Request of this server to an upstream or application.
    Client,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// Text.
    Text(String),
    /// Number.
    Number(i64),
}

/// A span that has ended.
#[derive(Debug, Clone)]
pub struct Span {
    /// Trace that the span belongs to.
    pub trace: TraceId,
    /// Identifier of this span.
    pub id: SpanId,
    /// Span that caused this one; `None` at the beginning of a trace.
    pub parent: Option<SpanId>,
    /// Value of `tracestate`; empty without one.
    pub state: String,
    /// Role.
    pub kind: SpanKind,
    /// Name: method and route.
    pub name: String,
    /// Beginning.
    pub start: SystemTime,
    /// End.
    pub end: SystemTime,
    /// Attributes, named by the semantic conventions of OpenTelemetry.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// True if the operation has failed.
    pub is_error: bool,
}

impl Span {
    /// Adds an attribute with a text, unless the text is empty.
    pub fn add_text(&mut self, name: &'static str, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.attributes.push((name, Attribute::Text(text)));
        }
    }

    /// Adds an attribute with a number.
    pub fn add_number(&mut self, name: &'static str, number: impl Into<i64>) {
        self.attributes.push((name, Attribute::Number(number.into())));
    }
}
