//! Signed URLs: a request is admitted by the signature of its URL (`auth = { signed = … }`).
//!
//! The signature covers the URL as the client has requested it, also if rules or an index file lead to another route.
//! Handlers, rules and caches get the request without the signature, so that a stored response serves all signed URLs
//! of its resource. Requests without a valid signature do not get that far.

use std::sync::Arc;

use rocknet_config::model::SignedUrls;
use rocknet_handler::guard::{Admission, Admitted, Check, GuardContext, Identity};
use rocknet_proto::method::Method;
use rocknet_proto::request::split_target;
use rocknet_proto::status::Status;

use super::authenticator::Authenticator;
use super::route::GuardRoute;
use crate::exchange::Client;
use crate::fixed;
use crate::metrics::SignedUrlOutcome;
use crate::outcomes::OutcomeCounters;
use crate::signed_url::{PARAMETER, SignedRequest, SigningKeys, Verdict, split_parameter};
use crate::url_keys;
use crate::values::origin_target;

/// Verifies the signatures of the URLs of a route.
struct SignedUrlGuard {
    keys: SigningKeys,
    counters: Arc<OutcomeCounters<SignedUrlOutcome>>,
}

/// Target of a request as received, with the signature. It is kept for the guards of further routes, such as that of an
/// index file, because these guards get the request without the signature.
struct ReceivedTarget(Box<[u8]>);

/// Creates the verification of the URLs of a route.
pub(super) fn make(model: &SignedUrls, route: &GuardRoute<'_>) -> Arc<dyn Authenticator> {
    Arc::new(SignedUrlGuard::new(model, route))
}

impl Authenticator for SignedUrlGuard {
    fn check(self: Arc<Self>, context: &GuardContext<'_>) -> Check {
        let (outcome, admission) = self.decide(context);
        self.counters.count(context.services, outcome);
        Check::Decided(admission)
    }

    fn anonymous(&self, context: &GuardContext<'_>, admitted: Admitted) -> Admitted {
        SignedUrlGuard::removing_signature(context, admitted)
    }
}

impl SignedUrlGuard {
    /// Prepares the keys of a route. Without a usable key, no request is admitted.
    fn new(model: &SignedUrls, route: &GuardRoute<'_>) -> SignedUrlGuard {
        let keys = match model {
            SignedUrls::Generated => Ok(route.registries.url_keys.of_site(route.site)),
            SignedUrls::File(path) => url_keys::read(path),
        };
        SignedUrlGuard {
            keys: keys.unwrap_or_else(|error| {
                tracing::error!(site = %route.site, route = %route.pattern, "signed URLs are refused: {error}");
                SigningKeys::new(&[])
            }),
            counters: route.registries.auth_counters.signed_urls.of_site(route.site),
        }
    }

    /// Admits a request with a valid signature.
    fn decide(&self, context: &GuardContext<'_>) -> (SignedUrlOutcome, Admission) {
        if self.keys.is_empty() {
            let response = fixed::error(Status::SERVICE_UNAVAILABLE);
            return (SignedUrlOutcome::Error, Err(Box::new(response)));
        }
        let received = context.held.find(|target: &ReceivedTarget| Some(target.0.clone()));
        let request = context.request;
        let own = origin_target(request);
        let target = received.as_deref().unwrap_or(&own);
        let signed = SignedRequest {
            // Over HTTP/2 and HTTP/3, a WebSocket connection begins with CONNECT.
            method: match request.method {
                Method::Connect => b"GET",
                _ => request.method_name,
            },
            authority: request.authority,
            target,
            client: match context.client {
                Client::Ip { address, .. } => Some(address),
                Client::Local => None,
            },
        };
        let now_s = context.services.clock.unix_ms() / 1000;
        match self.keys.verify(&signed, cookies(context), now_s) {
            Verdict::Valid => {
                if received.is_none() {
                    context.held.keep(ReceivedTarget(target.into()));
                }
                let admitted = SignedUrlGuard::removing_signature(context, Admitted::default());
                (SignedUrlOutcome::Admitted, Ok(admitted))
            }
            // 410 lets an error page of the route state that the link has expired. It is no offence, because a gallery
            // that was open for too long requests many expired URLs at once.
            Verdict::Expired => {
                let mut response = fixed::error(Status::GONE).with("Cache-Control", "no-store");
                response.is_no_offence = true;
                (SignedUrlOutcome::Expired, Err(Box::new(response)))
            }
            Verdict::Invalid => {
                let response = fixed::error(Status::FORBIDDEN);
                (SignedUrlOutcome::Invalid, Err(Box::new(response)))
            }
        }
    }

    /// Returns an admission whose [`Identity`] contains the signature of the URL, if there is one. The pipeline then
    /// removes the signature from the request before handlers, rules and caches get it.
    fn removing_signature(context: &GuardContext<'_>, admitted: Admitted) -> Admitted {
        let target = origin_target(context.request);
        let (_, query) = split_target(&target);
        let signature = query.and_then(split_parameter).map(|(_, value)| Identity {
            signature: Some([PARAMETER.as_bytes(), value].concat().into()),
            ..Identity::default()
        });
        Admitted {
            identity: signature.map(Arc::new),
            ..admitted
        }
    }
}

/// Returns the values of the cookies with signatures. Each cookie begins with [`PARAMETER`], which includes the `=`.
fn cookies<'r>(context: &GuardContext<'r>) -> impl Iterator<Item = &'r [u8]> + use<'r> {
    let fields = context.request.fields.by_name(b"cookie");
    let cookies = fields.flat_map(|field| field.split(|byte| *byte == b';'));
    cookies.filter_map(|cookie| cookie.trim_ascii().strip_prefix(PARAMETER.as_bytes()))
}
