//! Reads request bodies, and creates responses with their bodies.

use rocknet_control::api::{ApiError, JSON, MAX_REQUEST_BODY};
use rocknet_handler::exchange::RequestBody;
use rocknet_handler::response::{Body, ErrorPage, Response};
use rocknet_proto::Status;

/// Reads the whole body of a request.
///
/// # Errors
///
/// Fails with status 413 if the body is larger than [`MAX_REQUEST_BODY`] bytes, or with the status of the failed
/// transfer.
pub async fn read(body: &mut RequestBody) -> Result<Vec<u8>, ApiError> {
    let mut all = Vec::new();
    loop {
        match body.chunk().await {
            Ok(Some(chunk)) if all.len() + chunk.len() <= MAX_REQUEST_BODY => all.extend_from_slice(&chunk),
            Ok(Some(_)) => {
                return Err(ApiError::new(
                    413,
                    format!("the body is larger than {MAX_REQUEST_BODY} bytes"),
                ));
            }
            Ok(None) => return Ok(all),
            Err(error) => {
                let status = error.status();
                return Err(ApiError::new(status.code(), status.reason()));
            }
        }
    }
}

/// Creates a response with a JSON body. The body is empty if the value cannot be serialized.
pub fn json(status: Status, value: &impl serde::Serialize) -> Response {
    with_type(status, JSON, serde_json::to_vec(value).unwrap_or_default())
}

/// Creates the response of an error as JSON.
pub fn failed(error: &ApiError) -> Response {
    json(status(error.status), error)
}

/// Returns the status with this code; 500 for an invalid code.
pub fn status(code: u16) -> Status {
    Status::new(code).unwrap_or(Status::INTERNAL_SERVER_ERROR)
}

/// Creates a response that caches must not store and whose body no error page replaces.
pub fn with_type(status: Status, media_type: &str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(status)
        .with("Content-Type", media_type)
        .with("Cache-Control", "no-store")
        .with("X-Content-Type-Options", "nosniff")
        .body(body);
    response.error_page = ErrorPage::Never;
    response
}
