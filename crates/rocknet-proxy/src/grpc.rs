//! Error responses for gRPC clients: a gRPC status in the head of a response without a body.

use rocknet_proto::fields::KnownField;
use rocknet_proto::request::Request;
use rocknet_proto::status::Status;

use rocknet_handler::response::Response;

/// Returns true if the request is a gRPC call: its `Content-Type` is `application/grpc`, which may be followed by a
/// suffix such as `+proto`, or by parameters. gRPC-Web is a different protocol.
pub fn is_call(request: &Request<'_>) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let Some(media_type) = request.fields.get(KnownField::ContentType) else {
        return false;
    };
    let start = media_type.get(..TYPE.len());
    let is_type = start.is_some_and(|start| start.eq_ignore_ascii_case(TYPE));
    is_type && matches!(media_type.get(TYPE.len()), None | Some(b'+' | b';' | b' '))
}

/// Returns the gRPC response that replaces an error page of this status. Its HTTP status is 200, as gRPC requires.
pub fn refusal(status: Status) -> Response {
    Response::new(Status::OK)
        .with("Content-Type", "application/grpc")
        .with("grpc-status", code(status))
        .with("grpc-message", status.reason())
}

/// Maps the HTTP status of an error of the proxy to a gRPC status. The mapping follows the table of gRPC, with two
/// differences. The statuses 401, 403 and 404 are omitted, because no error of the proxy has them. The statuses 408 and
/// 413 are added for requests that exceed a limit of RockNet.
fn code(status: Status) -> &'static str {
    match status.code() {
        400 => INTERNAL,
        408 => DEADLINE_EXCEEDED,
        413 => RESOURCE_EXHAUSTED,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

// gRPC status codes, as sent in `grpc-status`.
const UNKNOWN: &str = "2";
const DEADLINE_EXCEEDED: &str = "4";
const RESOURCE_EXHAUSTED: &str = "8";
const INTERNAL: &str = "13";
const UNAVAILABLE: &str = "14";

#[cfg(test)]
mod tests {
    use rocknet_proto::request::{OwnedRequest, Version};

    use super::*;

    #[test]
    fn grpc_calls_are_recognized_by_their_content_type() {
        for (media_type, expected) in [
            ("application/grpc", true),
            ("Application/gRPC+proto", true),
            ("application/grpc;x=y", true),
            ("application/grpc-web", false),
            ("application/grpc-web+proto", false),
            ("application/json", false),
            ("application/gr", false),
        ] {
            let fields = [(KnownField::ContentType, media_type.as_bytes())];
            let owned = OwnedRequest::synthetic_get(Version::Http2, b"h", b"/", &fields);
            assert_eq!(is_call(&owned.view()), expected, "{media_type}");
        }
        assert!(!is_call(
            &OwnedRequest::synthetic_get(Version::Http2, b"h", b"/", &[]).view()
        ));
    }

    #[test]
    fn http_statuses_map_to_grpc_codes() {
        for (status, expected) in [
            (400, "13"),
            (408, "4"),
            (413, "8"),
            (500, "2"),
            (502, "14"),
            (503, "14"),
            (504, "14"),
        ] {
            let response = refusal(Status::new(status).expect("a status"));
            assert_eq!(response.status, Status::OK);
            assert_eq!(response.fields.value("grpc-status"), Some(expected), "{status}");
        }
    }
}
