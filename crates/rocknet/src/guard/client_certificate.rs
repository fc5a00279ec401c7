//! Rules for client certificates (`auth = { certificate = … }`).
//!
//! The handshake has verified the certificate, and `pipeline/preflight.rs` has checked that it is still valid. This
//! guard compares its names with the rule of the route.

use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use rocknet_config::model::CertificateRule;
use rocknet_config::template::{Placeholder, Scope, Template, Values};
use rocknet_handler::guard::{Admission, Admitted, Check, GuardContext, Identity};
use rocknet_proto::status::Status;

use super::authenticator::Authenticator;
use crate::fixed::{error_with_hint, replaceable};
use crate::response::Response;
use crate::values::field_value;

/// Authenticator that applies the certificate rule of a route.
struct CertificateGuard {
    rule: CertificateRule,
    /// Fields that admitted requests get.
    headers: Vec<(Box<str>, Template)>,
    /// Names of `headers`. Fields of the client with these names are removed.
    names: Arc<[Box<str>]>,
}

/// Values of a request, with the user of its certificate.
struct WithUser<'a> {
    values: &'a dyn Values,
    user: Option<&'a str>,
}

impl Values for WithUser<'_> {
    fn value(&self, placeholder: &Placeholder) -> Cow<'_, [u8]> {
        match placeholder {
            Placeholder::User => Cow::Borrowed(self.user.unwrap_or_default().as_bytes()),
            placeholder => self.values.value(placeholder),
        }
    }
}

/// Creates the rule of a route.
///
/// # Errors
///
/// As [`CertificateGuard::new`].
pub(super) fn make(rule: &CertificateRule) -> Result<Arc<dyn Authenticator>, Box<dyn Error>> {
    Ok(Arc::new(CertificateGuard::new(rule)?))
}

impl Authenticator for CertificateGuard {
    fn check(self: Arc<Self>, context: &GuardContext<'_>) -> Check {
        Check::Decided(self.decide(context))
    }

    fn admit_cached(&self, context: &GuardContext<'_>) -> Option<Option<Arc<str>>> {
        // The slow path adds the fields of `headers`. Without such fields, the identity that `decide` makes matters
        // only to applications, and a response of the worker cache needs no application.
        self.user(context).ok().filter(|_| self.names.is_empty())
    }

    /// Returns false: a request that is admitted by the address of its client (`satisfy = "any"`) gets no fields from a
    /// certificate. The guard of `anonymity.rs` removes fields of the client that have the names of `headers`.
    fn changes_anonymous_requests(&self) -> bool {
        false
    }
}

impl CertificateGuard {
    /// Prepares the rule of a route.
    ///
    /// # Errors
    ///
    /// Fails if a header field has an unknown placeholder.
    fn new(rule: &CertificateRule) -> Result<CertificateGuard, Box<dyn Error>> {
        let headers = rule.headers.iter().map(|(name, value)| {
            let template = Template::parse(value, Scope::Request).map_err(|error| error.message)?;
            Ok((name.as_str().into(), template))
        });
        Ok(CertificateGuard {
            rule: rule.clone(),
            headers: headers.collect::<Result<_, String>>()?,
            names: identity_names(rule).into(),
        })
    }

    /// Decides about a request.
    fn decide(&self, context: &GuardContext<'_>) -> Admission {
        let user = self.user(context).map_err(|hint| Box::new(refusal(hint)))?;
        // For a user without an identity, `Authorization` counts as a password that the server has verified, so
        // applications do not get this field. With a certificate, an application may use the field for logins of its
        // own. A user therefore gets an identity here even if it has no fields.
        let has_identity = user.is_some() || !self.names.is_empty();
        let identity = has_identity.then(|| Arc::new(self.identity(context, user.as_deref())));
        Ok(Admitted { user, identity })
    }

    /// Returns the user that the certificate of an admitted request names, if any.
    ///
    /// # Errors
    ///
    /// Returns a hint for the visitor if the request is not admitted.
    fn user(&self, context: &GuardContext<'_>) -> Result<Option<Arc<str>>, &'static str> {
        let tls = context.tls.ok_or(NO_TLS)?;
        let certificate = tls.client.as_ref().ok_or(NO_CERTIFICATE)?;
        match &certificate.names {
            Some(names) if self.rule.admits(names) => Ok(self.rule.user_of(names).map(Into::into)),
            // Names that cannot be read (`None`) match no rule.
            _ => Err(WRONG_CERTIFICATE),
        }
    }

    fn identity(&self, context: &GuardContext<'_>, user: Option<&str>) -> Identity {
        let values = WithUser {
            values: context.values,
            user,
        };
        let fields = self.headers.iter().map(|(name, template)| {
            let value = field_value(template, &values).into_bytes();
            (name.clone(), value.into_boxed_slice())
        });
        Identity {
            names: Arc::clone(&self.names),
            fields: fields.filter(|(_, value)| !value.is_empty()).collect(),
            identifies_client: true,
            ..Identity::default()
        }
    }
}

/// Returns the names of the fields by which a certificate is passed on.
pub(super) fn identity_names(rule: &CertificateRule) -> Vec<Box<str>> {
    rule.headers.keys().map(|name| name.as_str().into()).collect()
}

const NO_TLS: &str = "This page needs a client certificate, which works only with https:// in the address.";
const NO_CERTIFICATE: &str = "This page needs a client certificate, but the browser sent no certificate. Import one into \
                              the browser, restart the browser, and choose it on the next visit.";
const WRONG_CERTIFICATE: &str = "Your client certificate does not admit you to this page. To choose another one, restart \
                                 the browser.";

/// Returns the response to a request that is not admitted. The status is 403, because no `WWW-Authenticate` can ask for
/// a certificate.
fn refusal(hint: &'static str) -> Response {
    replaceable(error_with_hint(Status::FORBIDDEN, Some(hint)))
}
