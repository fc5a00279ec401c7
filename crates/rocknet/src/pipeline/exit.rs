//! What every response passes after its handler: the page for an error, then the fields of its route.

use std::sync::Arc;

use super::context::RequestContext;
use super::error_page;
use crate::cache::Cache;
use crate::filter::headers;
use crate::response::Response;
use crate::scope::Scope;

/// Applies the phases after the handler if nothing has to be waited for. False: nothing was changed, and [`apply`] does it.
pub fn apply_now(route: Option<&Arc<Scope>>, response: &mut Response) -> bool {
    let Some(route) = route else {
        headers::apply_server(&mut response.fields);
        return true;
    };
    if error_page::is_wanted(route, response) {
        return false;
    }
    finish(route, response);
    true
}

/// Applies the phases after the handler.
pub async fn apply(cache: &Cache, context: &RequestContext, response: &mut Response) {
    let Some(route) = &context.route else {
        return headers::apply_server(&mut response.fields);
    };
    if error_page::is_wanted(route, response) {
        error_page::replace(cache, route, response).await;
    }
    finish(route, response);
}

/// Applies the phases after the handler without the route's own page for an error, which may have to be waited for.
pub fn apply_without_page(route: Option<&Arc<Scope>>, response: &mut Response) {
    match route {
        Some(route) => finish(route, response),
        None => headers::apply_server(&mut response.fields),
    }
}

fn finish(route: &Scope, response: &mut Response) {
    error_page::fill(response);
    headers::apply(route, response.status, &mut response.fields);
}
