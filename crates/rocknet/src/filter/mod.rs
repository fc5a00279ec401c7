//! Filters change answers, in the order of their phases: errors get their pages, then fields are added.

pub mod errors;
pub mod headers;

use std::sync::Arc;

use crate::cache::Cache;
use crate::response::{Body, Response};
use crate::scope::Scope;

/// All of them, on what a handler has answered. What it says for itself is not replaced, though it be an error.
pub async fn finish(cache: &Cache, scope: &Arc<Scope>, response: &mut Response) {
    if matches!(response.body, Body::Empty) {
        errors::page(cache, scope, response).await;
    }
    errors::fill(response);
    headers::apply(scope, response.status, &mut response.fields);
}
