//! Errors get their page: an answer of 400 or more that says nothing says at least what it means.

use crate::handler::fixed;
use crate::response::{Body, Response};

/// Fills an empty error answer with the plain page; one that has content keeps it.
pub fn apply(response: &mut Response) {
    if response.status.code() < 400 || !matches!(response.body, Body::Empty) {
        return;
    }
    let page = fixed::error(response.status);
    for (name, value) in page.fields.iter() {
        response.fields.set(name.to_owned(), value.to_owned());
    }
    response.body = page.body;
}
