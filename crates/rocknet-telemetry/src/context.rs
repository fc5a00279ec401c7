//! Trace context: the header field `traceparent` (W3C Trace Context, level 1).

use std::fmt;

/// Identifier of a trace, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(u128);

/// Identifier of a span, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanId(u64);

/// Length in bytes of a `traceparent` of version 00, the only version that is defined.
const LENGTH: usize = 55;
/// Flag of a trace whose spans are recorded.
const SAMPLED: u8 = 1;

/// Position in a trace, as `traceparent` states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace.
    pub trace: TraceId,
    /// Span that the message belongs to.
    pub span: SpanId,
    /// True if the spans of the trace are recorded.
    pub is_sampled: bool,
}

impl TraceId {
    /// Returns the id with this value; 1 in place of 0.
    pub fn new(value: u128) -> TraceId {
        TraceId(value.max(1))
    }

    /// Returns the lower 64 bits, which are random. Sampling compares them with its limit.
    pub(crate) fn low(self) -> u64 {
        self.0 as u64
    }
}

impl SpanId {
    /// Returns the id with this value; 1 in place of 0.
    pub fn new(value: u64) -> SpanId {
        SpanId(value.max(1))
    }
}

/// Writes 32 hexadecimal digits.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Writes 16 hexadecimal digits.
impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Writes the value of `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-0{}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl TraceContext {
    /// Parses the value of `traceparent`. A later version is read as far as version 00 defines it. Returns `None` if
    /// the value is malformed, which the standard treats like a missing field.
    pub fn parse(value: &[u8]) -> Option<TraceContext> {
        let (version, rest) = (value.get(..2)?, value.get(2..LENGTH)?);
        let more = value.get(LENGTH);
        let is_whole = match version {
            b"00" => more.is_none(),
            b"ff" => false,
            _ => more.is_none_or(|byte| *byte == b'-'),
        };
        // After the version: dash, trace id (32 digits), dash, span id (16 digits), dash, flags (2 digits).
        let dashes = [0, 33, 50].iter().all(|at| rest.get(*at) == Some(&b'-'));
        hex(version)?;
        let trace = hex(rest.get(1..33)?)?;
        let span = hex(rest.get(34..50)?)? as u64;
        let flags = hex(rest.get(51..53)?)? as u8;
        (is_whole && dashes && trace != 0 && span != 0).then_some(TraceContext {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

/// Parses hexadecimal digits in lower case, the only ones that the standard permits.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0_u128, |value, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_is_read_and_written() {
        let context = TraceContext::parse(VALID.as_bytes()).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), VALID);
        let unsampled = VALID.replace("-01", "-00");
        assert_eq!(
            TraceContext::parse(unsampled.as_bytes()).unwrap().to_string(),
            unsampled
        );
        // Other flags are ignored.
        let random = VALID.replace("-01", "-03");
        assert_eq!(TraceContext::parse(random.as_bytes()), Some(context));
        // Of a later version, only the known part is read.
        for later in [VALID.replacen("00", "01", 1), format!("cc{}-more", &VALID[2..])] {
            assert_eq!(TraceContext::parse(later.as_bytes()), Some(context), "{later}");
        }
    }

    #[test]
    fn malformed_contexts_are_none() {
        for value in [
            "",
            "00",
            &VALID[..54],
            &format!("{VALID}-more"),
            &format!("{VALID} "),
            &VALID.replacen("00", "ff", 1),
            &VALID.replacen("00", "0x", 1),
            &VALID.to_uppercase(),
            &VALID.replace('-', "_"),
            &VALID.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &VALID.replace("b7ad6b7169203331", &"0".repeat(16)),
            &VALID.replace("b7ad", "b7-d"),
            &format!("01{}x", &VALID[2..]),
        ] {
            assert_eq!(TraceContext::parse(value.as_bytes()), None, "{value}");
        }
    }
}
