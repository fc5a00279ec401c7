//! Checks a request at the routes of the files and scripts that it leads to, besides the route of its path.

use std::rc::Rc;
use std::sync::Arc;

use rocknet_handler::guard::{Admitted, Check, Guard, GuardContext, Identity};
use rocknet_proto::status::Status;

use super::context::RequestContext;
use super::{file_rules, path_endpoints};
use crate::endpoint::Endpoint;
use crate::exchange::Exchange;
use crate::files::cache::l1::CachedEntry;
use crate::files::entry::Entry;
use crate::files::handler;
use crate::files::tree::Tree;
use crate::fixed;
use crate::handler::{Handler, HandlerFuture, HandlerOutput};
use crate::response::Response;
use crate::site::SiteRoutes;
use crate::worker::Worker;

/// Returns true if a request that has reached the endpoint is checked at no further route.
pub(super) fn is_final(endpoint: &Endpoint) -> bool {
    endpoint.route.is_unguarded || endpoint.tree.is_none()
}

/// Calls the handler, then checks the request at the route of the file that the handler returns, if that is another
/// route. For a script, the request is checked at the route of the script before the handler is called.
pub(super) fn handle(
    worker: &Rc<Worker>,
    context: &Rc<RequestContext>,
    endpoint: &Arc<Endpoint>,
    handler: &Arc<dyn Handler>,
    exchange: Exchange,
) -> HandlerFuture {
    if endpoint.route.is_unguarded {
        return handler.handle(exchange);
    }
    let (worker, context) = (Rc::clone(worker), Rc::clone(context));
    let (endpoint, handler) = (Arc::clone(endpoint), Arc::clone(handler));
    Box::pin(async move {
        match handle_guarded(&worker, &context, &endpoint, &handler, exchange).await {
            Ok(output) => output,
            Err(response) => HandlerOutput::Response(response),
        }
    })
}

/// Does the work of [`handle`] for a site with guards. The error is the response of a guard that rejects the request.
async fn handle_guarded(
    worker: &Worker,
    context: &RequestContext,
    endpoint: &Endpoint,
    handler: &Arc<dyn Handler>,
    mut exchange: Exchange,
) -> Result<HandlerOutput, Box<Response>> {
    let tree = endpoint.tree.as_ref();
    // For programs, the routes of all prefixes of the path were already checked.
    if tree.is_some_and(|tree| tree.is_program(&exchange.path)) {
        file_rules::enter_programs(worker, context, &exchange.path).await?;
    }
    let scripts = tree.filter(|tree| tree.runs_scripts && !tree.is_program(&exchange.path));
    let output = match scripts {
        Some(tree) => {
            // No file has a path such as `/a%2Fb/../c`, and its normalized form `/c` must not lead to a script.
            handler::set_script_lookup_path(&mut exchange);
            match handler::find_script(tree, &exchange).await {
                Ok(script) => {
                    // The rules were already applied to `exchange.path`. If a rule has rewritten it, only the rules
                    // after the rewrite were applied, as documented (docs/rules.md).
                    if *script.name != *exchange.path {
                        file_rules::enter(worker, context, &script.name).await?;
                    }
                    let admitted = enter_script(worker, tree, (&script.name, &script.path_info), context).await?;
                    exchange.user = admitted.user.or(exchange.user);
                    for identity in admitted.identities {
                        exchange.request = Rc::new(identity.apply(&exchange.request));
                        exchange.is_identified |= identity.identifies_client;
                        // The identity replaces fields of the client, such as `Remote-User`. A trailer field with such
                        // a name must not arrive either, because applications may treat it as a header field.
                        if identity.has_names() {
                            exchange.body.discard_trailers();
                        }
                    }
                    // The handler finds the same script in the worker cache.
                    handler.handle(exchange).await
                }
                // There is no script, or the server is overloaded. The handler is not called, because its own lookup
                // could find a script that was created in the meantime, and for which no guard has checked the request.
                Err(output) => output,
            }
        }
        None => handler.handle(exchange).await,
    };
    if let HandlerOutput::Cached(entry) = &output
        && let Some(cached) = entry.downcast_ref::<CachedEntry>()
    {
        context.set_user(enter_file(worker, &cached.tree, &cached.entry, context).await?.user);
    }
    Ok(output)
}

/// Checks a request at one more route, and waits for the decisions of its guards. Guards need the client and the
/// request, so a context without these is rejected with 403.
pub(super) async fn enter(
    worker: &Worker,
    endpoint: &Endpoint,
    context: &RequestContext,
) -> Result<Entered, Box<Response>> {
    let mut entered = Entered::default();
    for guard in &endpoint.guards {
        let has_admitted = |guards: &Vec<Arc<dyn Guard>>| guards.iter().any(|other| Arc::ptr_eq(other, guard));
        if has_admitted(&context.guards.borrow()) {
            continue;
        }
        let (Some(client), Some(request)) = (context.client, &context.request) else {
            return Err(Box::new(fixed::error(Status::FORBIDDEN)));
        };
        let check = {
            let request = request.view();
            let (peer, secure) = context.peer_and_handshake(client);
            guard.check(&GuardContext {
                services: worker.services(),
                client,
                peer,
                tls: secure.map(|secure| secure.tls_info()),
                request: &request,
                values: &context.guard_values(worker, client, &request),
                held: &context.held,
            })
        };
        let admission = match check {
            Check::Decided(admission) => admission,
            Check::Deferred(deferred) => deferred.await,
        };
        let admitted = admission?;
        // The access log and the keys of later limits read the user from the context.
        context.set_user(admitted.user.clone());
        context.guards.borrow_mut().push(Arc::clone(guard));
        if let Some(identity) = &admitted.identity {
            // A URL with its signature admits every client. The access log therefore gets the request without the
            // signature, which `apply` removes.
            if identity.signature.is_some()
                && let Some(request) = context.logged_request()
            {
                let without_signature = Rc::new(identity.apply(request));
                let _ = context.admitted_request.set(without_signature);
            }
            let mut identities = context.identities.borrow_mut();
            if !identities.iter().any(|other| Arc::ptr_eq(other, identity)) {
                identities.push(Arc::clone(identity));
            }
        }
        entered.add(admitted);
    }
    Ok(entered)
}

/// Results of the guards of one or more routes.
#[derive(Default)]
pub(super) struct Entered {
    /// User whom the guards have authenticated, if any.
    pub user: Option<Arc<str>>,
    /// Identities that the guards have returned.
    pub identities: Vec<Arc<Identity>>,
}

impl Entered {
    fn add(&mut self, admitted: Admitted) {
        self.user = admitted.user.or(self.user.take());
        self.identities.extend(admitted.identity);
    }
}

/// Checks a request at the route of the file that an entry of `tree` names, if it is another route.
pub(super) async fn enter_file(
    worker: &Worker,
    tree: &Arc<Tree>,
    entry: &Entry,
    context: &RequestContext,
) -> Result<Entered, Box<Response>> {
    if let Some(file) = &entry.file {
        file_rules::enter(worker, context, file).await?;
    }
    let own = site_routes(context).and_then(|routes| path_endpoints::of_entry(routes, tree, entry));
    match own {
        Some(endpoint) => enter(worker, endpoint, context).await,
        None => Ok(Entered::default()),
    }
}

/// Checks a request at the route of the script that handles it, and at the route of its path info.
async fn enter_script(
    worker: &Worker,
    tree: &Arc<Tree>,
    (script, path_info): (&str, &str),
    context: &RequestContext,
) -> Result<Entered, Box<Response>> {
    let Some(routes) = site_routes(context) else {
        return Ok(Entered::default());
    };
    let of_script = routes.endpoint_of_file(tree, script);
    let mut entered = Entered::default();
    for endpoint in of_script
        .into_iter()
        .chain(path_endpoints::of_path_info(routes, path_info))
    {
        let Entered { user, identities } = enter(worker, endpoint, context).await?;
        entered.user = user.or(entered.user);
        entered.identities.extend(identities);
    }
    Ok(entered)
}

/// Returns the routes of the requested site; `None` if the request has no site.
fn site_routes(context: &RequestContext) -> Option<&SiteRoutes> {
    let site = context.config.snapshot.sites.get(context.site? as usize)?;
    Some(site.routes(context.is_secure))
}
