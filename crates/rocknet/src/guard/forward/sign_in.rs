//! Redirect of clients that have to sign in before an authorization service admits them.

use rocknet_config::model::{Pattern, Redirect, SignIn};
use rocknet_handler::guard::GuardContext;
use rocknet_proto::request::split_target;
use rocknet_proto::semantics::safe_path::SafePath;
use rocknet_proto::status::Status;

use crate::fixed;
use crate::response::{ErrorPage, Response};
use crate::routing::{NoHost, RedirectError, Redirects, RequestTarget};
use crate::values;

/// Redirect of clients that have to sign in.
pub(super) struct SignInPage(
    /// `None` if the 401 response of the authorization service names the page.
    Option<Redirects>,
);

impl SignInPage {
    /// Prepares the redirect.
    ///
    /// # Errors
    ///
    /// Fails if its target is invalid.
    pub fn new(model: &SignIn) -> Result<SignInPage, RedirectError> {
        let SignIn::Target(target) = model else {
            return Ok(SignInPage(None));
        };
        // The page for signing in does not get the query of the request, which belongs to the requested page. A
        // redirect appends that query unless its target has a query, such as the empty one of `/login?`, or contains
        // `{target}`.
        let end = if target.contains('?') || target.contains("{target}") {
            ""
        } else {
            "?"
        };
        let redirect = Redirect {
            from: Pattern::Prefix("/".to_owned()),
            to: format!("{target}{end}"),
            status: Status::FOUND.code(),
        };
        Redirects::new(&[redirect]).map(Some).map(SignInPage)
    }

    /// Returns the target for a request; `None` if the authorization service names it.
    ///
    /// # Errors
    ///
    /// Fails if the target contains the host of the request, and the request names no valid host.
    pub fn location(&self, context: &GuardContext<'_>) -> Result<Option<String>, NoHost> {
        let Some(redirects) = &self.0 else { return Ok(None) };
        let target = values::origin_form(context.request);
        let (raw_path, query) = split_target(target);
        // The redirect applies to every path, so `/` can stand in for a path that `SafePath` refuses.
        let path = SafePath::parse(raw_path).map_or("/".into(), SafePath::into_str);
        let mut location = Vec::new();
        let target = RequestTarget {
            path: &path,
            raw_path,
            query,
            values: context.values,
        };
        redirects.find(&target, &mut location)?;
        Ok(Some(String::from_utf8_lossy(&location).into_owned()))
    }
}

/// Returns the redirect to `page`, or to the page that `unauthorized` names, with the cookies of `unauthorized`. If
/// there is no page, returns `unauthorized` itself. `unauthorized`: 401 response of the authorization service.
pub(super) fn sign_in(page: Option<String>, mut unauthorized: Response) -> Response {
    let Some(page) = page.or_else(|| unauthorized.fields.value("Location").map(str::to_owned)) else {
        unauthorized.error_page = ErrorPage::IfEmpty;
        return unauthorized;
    };
    let mut response = fixed::redirect(Status::FOUND, page);
    for (name, value) in unauthorized.fields.iter() {
        if name.eq_ignore_ascii_case("Set-Cookie") {
            response.fields.add(name, value);
        }
    }
    response
}
