//! Keys of `[tracing]`.

use super::target::Target;
use super::{Key, Kind, Section};
use crate::binding::{Rendered, bound};

pub(super) const KEYS: &[Key] = &[
    Key::new(
        "tracing",
        &[Section::Top],
        Kind::Table(Section::Tracing),
        "Traces of requests in the format of OpenTelemetry.",
    )
    .foreign_names(&["otel", "opentelemetry"]),
    Key::new(
        "endpoint",
        &[Section::Tracing],
        Kind::Text("URL such as \"http://127.0.0.1:4318\""),
        "Collector that spans are sent to, by OTLP over HTTP with JSON. Without a path, `/v1/traces` is added. Without \
         this key no spans are recorded, and `traceparent` of clients is forwarded unchanged. A collector that does not \
         respond slows no request: spans that do not fit the queue are dropped and counted in the metrics.",
    )
    .sets(&[Target::Tracing(bound!(
        render: |tracing, _| match &tracing.endpoint {
            Some(url) => Rendered::text(url),
            None => Rendered::Unset,
        }
    ))])
    .example("endpoint = \"http://127.0.0.1:4318\"")
    .foreign_names(&["otel_exporter", "otlp"]),
    Key::new(
        "sample",
        &[Section::Tracing],
        Kind::Text("percentage such as \"10%\""),
        "Share of the requests whose spans are recorded. It applies to requests without a valid `traceparent`; for the \
         others, the sampled flag of that field decides.",
    )
    .sets(&[Target::Tracing(bound!(
        render: |tracing, _| Rendered::text(&tracing.sample.to_string())
    ))])
    .example("sample = \"1%\"")
    .foreign_names(&["otel_trace", "sampling", "sample_rate"]),
    Key::new(
        "service",
        &[Section::Tracing],
        Kind::Text("name"),
        "Name of the service in the spans (`service.name`).",
    )
    .sets(&[Target::Tracing(bound!(
        render: |tracing, _| Rendered::text(&tracing.service)
    ))])
    .example("service = \"shop\"")
    .foreign_names(&["otel_service_name", "service_name"]),
    Key::new(
        "headers",
        &[Section::Tracing],
        Kind::Map {
            name: "field name",
            value: &Kind::Text("field value"),
        },
        "Header fields of requests to the collector, such as an API key. `${file:PATH}` keeps a key out of the \
         configuration.",
    )
    .sets(&[Target::Tracing(bound!(
        render: |tracing, _| Rendered::names(&tracing.headers)
    ))])
    .example("headers = { \"X-Api-Key\" = \"4711\" }"),
];
