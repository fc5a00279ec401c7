//! Removal of identity fields that clients send: only an authenticator, such as an authorization service
//! (`auth = { forward = "…" }`) or a login (`oidc`), may set them.

use std::sync::Arc;

use rocknet_config::model::Settings;
use rocknet_handler::guard::{Admitted, Check, Guard, GuardContext, Identity};
use rocknet_proto::semantics::cgi_names;

use super::authenticators;

/// Guard that admits every request, without the fields by which the routes of its site identify clients.
struct Anonymity(Arc<Identity>);

/// Returns the guard for all routes of a site with these settings; `None` if no route has such fields.
pub fn anonymity<'s>(settings: impl Iterator<Item = &'s Settings>) -> Option<Arc<dyn Guard>> {
    let mut names: Vec<_> = settings.flat_map(authenticators::identity_names).collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| -> Arc<dyn Guard> {
        Arc::new(Anonymity(Arc::new(Identity {
            names: names.into(),
            ..Identity::default()
        })))
    })
}

impl Anonymity {
    fn is_needed(&self, context: &GuardContext<'_>) -> bool {
        let names = &self.0.names;
        let is_own = |name: &[u8]| names.iter().any(|own| cgi_names::are_same(name, own.as_bytes()));
        context.request.fields.iter().any(|(name, _)| is_own(name))
    }
}

impl Guard for Anonymity {
    fn check(&self, context: &GuardContext<'_>) -> Check {
        let identity = self.is_needed(context).then(|| Arc::clone(&self.0));
        Check::Decided(Ok(Admitted { user: None, identity }))
    }

    fn removes_fields(&self) -> bool {
        true
    }

    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        (!self.is_needed(context)).then_some(None)
    }
}
