//! Permits pages of other origins to read responses (CORS, Fetch standard §3.2): a filter that adds the fields to
//! responses, and a guard that answers preflight requests.

use std::sync::Arc;

use rocknet_config::model::{Cors, Origins};
use rocknet_config::template::{Placeholder, Values};
use rocknet_proto::fields::FieldList;
use rocknet_proto::method::Method;
use rocknet_proto::status::Status;

use crate::filter::{DeferredFilter, Filter, FilterContext, Phase};
use crate::guard::{Admitted, Check, Guard, GuardContext};
use crate::response::Response;
use crate::route::Route;

/// Maximum length of an origin in bytes. Browsers send scheme, host and port.
const MAX_ORIGIN: usize = 512;

/// Maximum length in bytes of a value that the response to a preflight request repeats: the requested method, or the
/// list of requested fields. Longer values are ignored.
const MAX_LIST: usize = 4_096;

const ALLOW_ORIGIN: &str = "Access-Control-Allow-Origin";

const RESOURCE_POLICY: &str = "Cross-Origin-Resource-Policy";

/// Origin of pages whose origin is hidden.
const OPAQUE: &str = "null";

/// Filter that adds the fields of CORS to the responses of routes with `cors`.
pub struct CorsFields {
    // Fields of requests that decide the response.
    origin: Placeholder,
    method: Placeholder,
    headers: Placeholder,
    private_network: Placeholder,
}

impl Default for CorsFields {
    fn default() -> CorsFields {
        let field = |name: &str| Placeholder::RequestHeader(name.into());
        CorsFields {
            origin: field("origin"),
            method: field("access-control-request-method"),
            headers: field("access-control-request-headers"),
            private_network: field("access-control-request-private-network"),
        }
    }
}

impl Filter for CorsFields {
    fn phase(&self) -> Phase {
        Phase::Cors
    }

    fn apply_to_head(&self, route: &Route, values: Option<&dyn Values>, _status: Status, fields: &mut FieldList) {
        self.add(route, values, fields);
    }

    fn apply(&self, context: &FilterContext<'_>, response: &mut Response) -> Option<Box<dyn DeferredFilter>> {
        self.add(context.route, context.values, &mut response.fields);
        None
    }
}

impl CorsFields {
    /// Adds the fields. An application that has sent its own keeps them.
    fn add(&self, route: &Route, values: Option<&dyn Values>, fields: &mut FieldList) {
        let (Some(cors), Some(values)) = (&route.cors, values) else {
            return;
        };
        if fields.value(ALLOW_ORIGIN).is_some() {
            return;
        }
        let is_same_for_all = cors.origins == Origins::All && !cors.credentials;
        if !is_same_for_all {
            // A response without the fields depends on the origin too. Caches must keep both forms apart.
            fields.add("Vary", "Origin");
        }
        let origin = values.value(&self.origin);
        let permitted = plain(&origin, MAX_ORIGIN).filter(|origin| cors.permits(origin));
        match (is_same_for_all, permitted) {
            (true, _) => fields.set(ALLOW_ORIGIN, "*"),
            (false, Some(origin)) => fields.set(ALLOW_ORIGIN, origin),
            (false, None) => return,
        }
        // Local files have the origin `null`, and any website can send requests with it from a sandboxed frame.
        // Therefore `null` never gets credentials.
        if cors.credentials && permitted != Some(OPAQUE) {
            fields.set("Access-Control-Allow-Credentials", "true");
        }
        if fields.value(RESOURCE_POLICY).is_none() {
            fields.set(RESOURCE_POLICY, "cross-origin");
        }
        let method = values.value(&self.method);
        let is_options = &*values.value(&Placeholder::Method) == b"OPTIONS";
        let Some(method) = plain(&method, MAX_LIST).filter(|_| is_options && permitted.is_some()) else {
            if !cors.expose.is_empty() {
                fields.set("Access-Control-Expose-Headers", cors.expose.join(", "));
            }
            return;
        };
        fields.add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers");
        // A wildcard does not apply to requests with credentials, so the requested method and names are repeated.
        match &cors.methods[..] {
            [] => fields.set("Access-Control-Allow-Methods", method),
            methods => fields.set("Access-Control-Allow-Methods", methods.join(", ")),
        }
        match (&cors.headers[..], plain(&values.value(&self.headers), MAX_LIST)) {
            ([], None) => {}
            ([], Some(requested)) => fields.set("Access-Control-Allow-Headers", requested),
            (names, _) => fields.set("Access-Control-Allow-Headers", names.join(", ")),
        }
        if &*values.value(&self.private_network) == b"true" {
            fields.set("Access-Control-Allow-Private-Network", "true");
        }
        fields.set("Access-Control-Max-Age", cors.max_age.as_secs().to_string());
    }
}

/// Returns a value of a request as text if it can be repeated in a response: not empty, within the limit, and visible
/// ASCII or spaces.
fn plain(value: &[u8], max: usize) -> Option<&str> {
    let is_plain = |byte: &u8| *byte == b' ' || byte.is_ascii_graphic();
    let is_usable = (1..=max).contains(&value.len()) && value.iter().all(is_plain);
    std::str::from_utf8(value).ok().filter(|_| is_usable)
}

/// Creates the guard that answers preflight requests. They have no credentials and ask whether the request itself may
/// follow, so they are answered before access control and before applications.
pub fn preflight_guard(cors: Cors) -> Arc<dyn Guard> {
    Arc::new(Preflight(cors))
}

/// Guard that answers preflight requests with 204. [`CorsFields`] adds the fields.
struct Preflight(Cors);

impl Guard for Preflight {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        if self.is_preflight(context) {
            return Check::Decided(Err(Box::new(Response::new(Status::NO_CONTENT))));
        }
        Check::Decided(Ok(Admitted::default()))
    }

    // `None`: the caller has to use `check`, which answers the preflight request. `Some(None)`: admitted, without a
    // user.
    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        (!self.is_preflight(context)).then_some(None)
    }
}

impl Preflight {
    fn is_preflight(&self, context: &GuardContext<'_>) -> bool {
        let request = context.request;
        if request.method != Method::Options {
            return false;
        }
        let first = |name: &str| request.fields.by_name(name.as_bytes()).next();
        let origin = first("origin").and_then(|origin| plain(origin, MAX_ORIGIN));
        origin.is_some_and(|origin| self.0.permits(origin)) && first("access-control-request-method").is_some()
    }
}
