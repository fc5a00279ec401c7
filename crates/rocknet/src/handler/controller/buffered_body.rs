//! Content that is held whole: of requests to a controller, and of its responses.

use crate::exchange::RequestBody;
use crate::response::{Body, Response};

use super::error::ControllerError;

/// Content that a controller is given whole. All of it is held, for as many requests as come at once; what is larger is
/// taken in pieces.
const MAX_REQUEST_BODY: usize = 1024 * 1024;

/// Puts what was written into the response.
pub fn with_body(mut response: Response, written: Vec<u8>) -> Response {
    if !written.is_empty() {
        response.body = Body::Bytes(written.into());
    }
    response
}

/// Receives the whole content.
pub async fn receive_all(body: &mut RequestBody) -> Result<Vec<u8>, ControllerError> {
    let mut received = Vec::new();
    while let Some(chunk) = body.chunk().await.map_err(ControllerError::RequestBody)? {
        if received.len() + chunk.len() > MAX_REQUEST_BODY {
            return Err(ControllerError::TooLarge);
        }
        received.extend_from_slice(&chunk);
    }
    Ok(received)
}
