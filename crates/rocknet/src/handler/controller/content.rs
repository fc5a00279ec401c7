//! Content that is held whole: of requests to a controller, and of its responses.

use crate::exchange::RequestBody;
use crate::response::{Body, Response};

use super::trouble::Trouble;

/// Content that a controller is given whole. All of it is held, for as many requests as come at once; what is larger is
/// taken in pieces.
const MAX_CONTENT: usize = 1024 * 1024;

/// Puts what was written into the response.
pub fn whole(mut response: Response, written: Vec<u8>) -> Response {
    if !written.is_empty() {
        response.body = Body::Bytes(written.into());
    }
    response
}

/// Receives the whole content.
pub async fn collect(content: &mut RequestBody) -> Result<Vec<u8>, Trouble> {
    let mut all = Vec::new();
    while let Some(chunk) = content.chunk().await.map_err(Trouble::Content)? {
        if all.len() + chunk.len() > MAX_CONTENT {
            return Err(Trouble::TooLarge);
        }
        all.extend_from_slice(&chunk);
    }
    Ok(all)
}
