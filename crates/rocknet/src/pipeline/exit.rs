//! Phases of every response after its handler: error page, content coding, header fields of the route.

use std::rc::Rc;

use rocknet_config::template::Values;
use rocknet_handler::filter::{DeferredFilter, FilterContext, apply_to_head};
use rocknet_proto::request::Request;

use super::context::RequestContext;
use super::error_page;
use crate::headers;
use crate::response::Response;
use crate::worker::Worker;

/// State of a response after the phases that do not wait.
pub enum Exit {
    /// The response has passed all phases.
    Done,
    /// The response waits for an error page.
    Page,
    /// The response waits for a filter. The number is the index of the next filter.
    Filter(Box<dyn DeferredFilter>, usize),
}

/// Applies the phases after the handler until one has to wait; [`complete`] applies the rest. `request`: `None` if it
/// is no longer available; filters that need it then leave the response unchanged.
pub fn begin(
    worker: &Worker,
    context: &RequestContext,
    request: Option<&Request<'_>>,
    response: &mut Response,
) -> Exit {
    let Some(route) = &context.route else {
        headers::apply_server(&mut response.fields);
        return Exit::Done;
    };
    context.add_cookies(response);
    if error_page::is_wanted(route, response) {
        return Exit::Page;
    }
    error_page::fill(response);
    filter(worker, context, request, response, 0)
}

/// Applies the filters from index `next` on.
fn filter(
    worker: &Worker,
    context: &RequestContext,
    request: Option<&Request<'_>>,
    response: &mut Response,
    next: usize,
) -> Exit {
    let Some(route) = &context.route else { return Exit::Done };
    let upstream = response.upstream.as_ref().filter(|_| route.has_placeholders).cloned();
    let values = request.and_then(|request| context.values(worker, request, response.status, upstream.as_ref()));
    // An application can name a file to send, for example by `X-Accel-Redirect`. If the route of this file limits the
    // bandwidth, its limits apply in place of those of the request's route.
    let bandwidth_route = context.bandwidth_route.get().unwrap_or(route);
    let filter_context = FilterContext {
        services: worker,
        route,
        bandwidth_route,
        client: context.client(),
        request,
        values: values.as_ref().map(|values| values as &dyn Values),
    };
    for (number, filter) in worker.shared.registries.filters.iter().enumerate().skip(next) {
        if let Some(deferred) = filter.apply(&filter_context, response) {
            return Exit::Filter(deferred, number + 1);
        }
    }
    context.protect_cookies(response);
    Exit::Done
}

/// Applies the remaining phases.
pub async fn complete(worker: Rc<Worker>, context: Rc<RequestContext>, mut exit: Exit, response: &mut Response) {
    let Some(route) = &context.route else { return };
    loop {
        let next = match exit {
            Exit::Done => return,
            Exit::Page => {
                error_page::replace(&worker.shared.cache, route, context.pages.as_ref(), response).await;
                error_page::fill(response);
                0
            }
            Exit::Filter(deferred, next) => {
                deferred.complete(response).await;
                next
            }
        };
        let request = context.request.as_ref().map(|request| request.view());
        exit = filter(&worker, &context, request.as_ref(), response, next);
    }
}

/// Applies the phases after the handler to an error response without waiting. The response gets the plain page, because
/// reading the route's own page may wait for the disk. Filters are applied only to the head. Unlike [`begin`], this
/// adds no cookies of an authorization service, so shared caches may keep the response.
pub fn apply_without_page(worker: &Worker, context: &RequestContext, response: &mut Response) {
    match &context.route {
        Some(route) => {
            error_page::fill(response);
            let filters = &worker.shared.registries.filters;
            let request = context.request.as_ref().map(|request| request.view());
            let values = request.as_ref();
            let values = values.and_then(|request| context.values(worker, request, response.status, None));
            let values = values.as_ref().map(|values| values as &dyn Values);
            apply_to_head(filters, route, values, response.status, &mut response.fields);
        }
        None => headers::apply_server(&mut response.fields),
    }
}
