//! Log lines about rejected and failed requests: site, path, reason and what to do.

use rocknet_proto::refusal::{FieldError, Refusal};
use rocknet_proto::status::Status;
use tracing::Level;

use super::context::RequestContext;
use crate::exchange::Client;
use crate::fixed::{error_with_hint, replaceable};
use crate::log::throttle::Cause;
use crate::response::Response;
use crate::worker::Worker;

/// Logs a rejection at info, at most one line a second for each site and reason, because any client can cause
/// rejections. `path`: path of the request; empty if it is unknown, or if the context contains the request.
#[cold]
pub fn log(client: &Client, context: &RequestContext, path: &[u8], status: Status, reason: &'static str) {
    let site = context.site_name();
    let cause = Cause {
        level: Level::INFO,
        what: status.reason(),
        site,
        subject: reason,
    };
    if !cause.may_be_logged() {
        return;
    }
    let request = context.request.as_ref().map(|request| request.view());
    let path = match &request {
        Some(request) if path.is_empty() => request.path,
        _ => path,
    };
    let path = String::from_utf8_lossy(path);
    let help = help(status);
    tracing::info!(site, %path, %client, help, "{} {}: {reason}", status.code(), status.reason());
}

/// Returns the advice for the operator in the log line of a rejection; empty without advice.
fn help(status: Status) -> &'static str {
    match status {
        Status::CONTENT_TOO_LARGE => "raise `body_size` of the site or of [limits], if such requests are wanted",
        Status::URI_TOO_LONG => "raise `target_size` of [limits], if such requests are wanted",
        Status::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "raise `header_size` or `header_fields` of [limits], if such requests are wanted"
        }
        Status::BAD_REQUEST => "the client, or a proxy before this server, violates HTTP",
        _ => "",
    }
}

/// Logs at warn that a response, or the next piece of its body, was not ready in time. Throttled, because a disk that
/// hangs affects all requests for its files. `limits`: names of the limits that have passed. `has_fallback`: true if
/// an error response waited only for the error page of the route or for a filter. The client then gets the plain page:
/// a page of the server itself that explains the status.
#[cold]
pub fn log_handler_timeout(
    worker: &Worker,
    context: Option<&RequestContext>,
    limits: &'static str,
    has_fallback: bool,
) {
    let site = context.map_or("", |context| context.site_name());
    let cause = Cause {
        level: Level::WARN,
        what: "a response was not ready in time",
        site,
        subject: limits,
    };
    if cause.may_be_logged() {
        let result = match has_fallback {
            true => "the client got the server's plain page instead of the site's error page",
            false => "the request failed",
        };
        let address = worker.address.to_string();
        tracing::warn!(site, %address, "a response, or its next piece, was not ready within {limits}; {result}");
    }
}

/// Logs at error that a handler has panicked, at most once a second for each site.
#[cold]
pub fn log_panic(context: &RequestContext) {
    let site = context.site_name();
    let cause = Cause {
        level: Level::ERROR,
        what: "a handler panicked; its request failed",
        site,
        subject: "",
    };
    if cause.may_be_logged() {
        tracing::error!(site, "a handler panicked; its request failed");
    }
}

/// Returns the error page for a rejected request, with the reason if the page does not already state it.
pub(super) fn refusal_page(refusal: Refusal) -> Response {
    let hint = match refusal {
        Refusal::ContentTooLarge | Refusal::TargetTooLong | Refusal::Field(FieldError::TooLarge) => None,
        _ => Some(refusal.reason()),
    };
    // The error page of the route may replace this page.
    replaceable(error_with_hint(refusal.status(), hint))
}

#[cfg(test)]
mod tests {
    use rocknet_proto::refusal::FramingError;

    use super::*;
    use crate::response::Body;

    #[test]
    fn the_page_adds_the_reason_only_if_it_does_not_state_it_already() {
        for (refusal, expected) in [
            (
                Refusal::ContentTooLarge,
                "<p>What you sent is larger than this site accepts.</p></main>",
            ),
            (Refusal::TargetTooLong, "question mark.</p></main>"),
            (Refusal::Field(FieldError::TooLarge), "often helps.</p></main>"),
            (
                Refusal::Field(FieldError::TooMany),
                "often helps.</p><p>too many fields</p></main>",
            ),
            (
                Refusal::HostMissing,
                "as a request.</p><p>a request without a host</p></main>",
            ),
            (
                Refusal::Framing(FramingError::LengthInvalid),
                "<p>a malformed Content-Length</p></main>",
            ),
        ] {
            let Body::Bytes(page) = refusal_page(refusal).body else {
                panic!("{refusal:?}: no page");
            };
            let page = String::from_utf8_lossy(&page).into_owned();
            assert!(page.contains(expected), "{refusal:?}: {page}");
        }
    }
}
