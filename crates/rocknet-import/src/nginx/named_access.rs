//! The named location to which `try_files` leads, such as `@app`, for the access control of the place with `try_files`.

use crate::directive::Directive;

/// Named location to which `try_files` leads.
pub(super) struct NamedAccess<'a> {
    pub location: &'a Directive,
    /// Its directives of access control and authentication.
    pub directives: Vec<&'a Directive>,
    /// Where nginx leaves it, if this is known.
    pub exit: Option<NamedExit<'a>>,
}

/// Way in which nginx leaves a named location before it applies access control there.
pub(super) enum NamedExit<'a> {
    /// It responds.
    Response,
    /// It continues in the location of the rewritten path, which has these directives.
    Target(&'a [Directive]),
}
