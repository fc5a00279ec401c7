//! Spans in the JSON of OTLP (OpenTelemetry Protocol 1.x): identifiers in hexadecimal digits, and 64-bit numbers as
//! text.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::span::{Attribute, Span, SpanKind};

/// Returns the body of a request that exports spans.
pub fn request(service: &str, spans: &[Span]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        ("service.name", service),
        ("telemetry.sdk.name", "rocknet"),
        ("telemetry.sdk.language", "rust"),
        ("telemetry.sdk.version", version),
    ];
    let resource = resource.map(|(name, text)| attribute(name, &Attribute::Text(text.to_owned())));
    json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{
                "scope": { "name": "rocknet", "version": version },
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

/// Returns a span in the form of the protocol.
fn span(span: &Span) -> Value {
    // `SPAN_KIND_SERVER` and `SPAN_KIND_CLIENT` of OTLP.
    let kind = match span.kind {
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    };
    let attributes = span.attributes.iter().map(|(name, value)| attribute(name, value));
    let mut json = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        // The flag of a sampled trace.
        "flags": 1,
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end.max(span.start)),
        "attributes": attributes.collect::<Vec<_>>(),
        "status": {},
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = parent.to_string().into();
    }
    if !span.state.is_empty() {
        json["traceState"] = span.state.clone().into();
    }
    if span.is_error {
        // `STATUS_CODE_ERROR` of OTLP.
        json["status"] = json!({ "code": 2 });
    }
    json
}

/// Returns an attribute in the form of the protocol.
fn attribute(name: &str, value: &Attribute) -> Value {
    let value = match value {
        Attribute::Text(text) => json!({ "stringValue": text }),
        Attribute::Number(number) => json!({ "intValue": number.to_string() }),
    };
    json!({ "key": name, "value": value })
}

/// Returns the nanoseconds since 1970 as text.
fn nanoseconds(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::context::{SpanId, TraceId};

    #[test]
    fn spans_have_the_form_of_the_protocol() {
        let start = UNIX_EPOCH + Duration::from_nanos(1_544_712_660_000_000_000);
        let mut span = Span {
            trace: TraceId::new(0x5b8e_fff7_9803_8103_d269_b633_813f_c60c),
            id: SpanId::new(0xeee1_9b7e_c3c1_b174),
            parent: Some(SpanId::new(7)),
            state: "a=1".to_owned(),
            kind: SpanKind::Server,
            name: "GET /*".to_owned(),
            start,
            end: start + Duration::from_secs(1),
            attributes: Vec::new(),
            is_error: true,
        };
        span.add_text("http.request.method", "GET");
        span.add_text("user_agent.original", "");
        span.add_number("http.response.status_code", 500);
        let body = request("shop", &[span]);
        let resource = &body["resourceSpans"][0];
        assert_eq!(
            resource["resource"]["attributes"][0],
            json!({ "key": "service.name", "value": { "stringValue": "shop" } })
        );
        assert_eq!(
            resource["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "5b8efff798038103d269b633813fc60c",
                "spanId": "eee19b7ec3c1b174",
                "parentSpanId": "0000000000000007",
                "traceState": "a=1",
                "flags": 1,
                "name": "GET /*",
                "kind": 2,
                "startTimeUnixNano": "1544712660000000000",
                "endTimeUnixNano": "1544712661000000000",
                "attributes": [
                    { "key": "http.request.method", "value": { "stringValue": "GET" } },
                    { "key": "http.response.status_code", "value": { "intValue": "500" } },
                ],
                "status": { "code": 2 },
            })
        );
    }
}
