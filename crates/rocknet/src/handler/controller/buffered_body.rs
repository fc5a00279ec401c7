//! Request and response bodies that are buffered completely.

use crate::exchange::RequestBody;
use crate::response::{Body, Response};

use super::error::ControllerError;

/// Maximum size in bytes of a request body that a controller receives as a whole. The size is limited because the
/// bodies of all concurrent requests are in memory. A controller for larger bodies has to receive them in pieces.
const MAX_REQUEST_BODY: usize = 1024 * 1024;

/// Sets the response body to the bytes that the controller has written.
pub fn with_body(mut response: Response, written: Vec<u8>) -> Response {
    if !written.is_empty() {
        response.body = Body::Bytes(written.into());
    }
    response
}

/// Receives the complete request body.
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
