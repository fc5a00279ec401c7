//! What every response passes after its handler: the page for an error, a content coding, the fields of its route.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use rocknet_proto::fields::{Fields, Known};
use rocknet_proto::method::Method;
use rocknet_proto::request::Request;

use super::context::RequestContext;
use super::error_page;
use crate::filter::encode;
use crate::headers;
use crate::response::Response;
use crate::route::Route;
use crate::worker::Worker;

/// How far a response came without a wait.
pub enum Exit {
    /// It has passed all phases.
    Done,
    /// It waits for the page of an error.
    Page,
    /// It waits for its coding.
    Coding(encode::Pending),
}

/// Applies the phases after the handler as far as nothing has to be waited for; [`complete`] does the rest. `request`: `None`
/// if it is not known any more, and the response is sent as it is.
pub fn begin(
    worker: &Worker,
    route: Option<&Arc<Route>>,
    request: Option<&Request<'_>>,
    response: &mut Response,
) -> Exit {
    let Some(route) = route else {
        headers::apply_server(&mut response.fields);
        return Exit::Done;
    };
    if error_page::is_wanted(route, response) {
        return Exit::Page;
    }
    match encode(worker, route, request, response) {
        Some(pending) => Exit::Coding(pending),
        None => {
            headers::apply(route, response.status, &mut response.fields);
            Exit::Done
        }
    }
}

/// Applies the phases that are left.
pub async fn complete(worker: Rc<Worker>, context: Rc<RequestContext>, exit: Exit, response: &mut Response) {
    let Some(route) = &context.route else { return };
    let coding = match exit {
        Exit::Done => return,
        Exit::Coding(pending) => Some(pending),
        Exit::Page => {
            error_page::replace(&worker.shared.cache, route, context.pages.as_ref(), response).await;
            let request = context.request.as_ref().map(|request| request.view());
            encode(&worker, route, request.as_ref(), response)
        }
    };
    if let Some(pending) = coding {
        pending.complete(response).await;
    }
    headers::apply(route, response.status, &mut response.fields);
}

/// Applies the phases after the handler without the route's own page for an error, which may have to be waited for.
pub fn apply_without_page(route: Option<&Arc<Route>>, response: &mut Response) {
    match route {
        Some(route) => {
            error_page::fill(response);
            headers::apply(route, response.status, &mut response.fields);
        }
        None => headers::apply_server(&mut response.fields),
    }
}

/// Fills an empty error, and codes what is to be coded.
fn encode(
    worker: &Worker,
    route: &Route,
    request: Option<&Request<'_>>,
    response: &mut Response,
) -> Option<encode::Pending> {
    error_page::fill(response);
    let request = request.filter(|_| route.compress && !response.is_negotiated)?;
    let accept_encoding = joined(&request.fields, Known::AcceptEncoding);
    let if_none_match = joined(&request.fields, Known::IfNoneMatch);
    let conditions = encode::Conditions {
        compress: true,
        accept_encoding: accept_encoding.as_deref(),
        if_none_match: if_none_match.as_deref(),
        is_head: request.method == Method::Head,
        priority: route.priority,
    };
    encode::apply(&conditions, &worker.shared.pool, &worker.shared.encoders, response)
}

/// All values of a list field as one; a copy only if it was sent more than once.
fn joined<'a>(fields: &Fields<'a>, name: Known) -> Option<Cow<'a, [u8]>> {
    if fields.is_repeated(name) {
        return Some(Cow::Owned(fields.all(name).collect::<Vec<_>>().join(&b", "[..])));
    }
    fields.get(name).map(Cow::Borrowed)
}
