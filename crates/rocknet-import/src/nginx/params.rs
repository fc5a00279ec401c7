//! Parameters of applications, such as `fastcgi_param`, which locations inherit unless they have parameters of their
//! own.

use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

/// Parameters whose usual values RockNet sets itself. `HTTP_PROXY`, whose usual value is empty, is not set at all.
const USUAL: [&str; 8] = [
    "HTTPS",
    "HTTP_PROXY",
    "REDIRECT_STATUS",
    "GATEWAY_INTERFACE",
    "SERVER_SOFTWARE",
    "REQUEST_SCHEME",
    "SCRIPT_NAME",
    "PATH_INFO",
];

/// Returns the directive that takes a parameter, such as `fastcgi_pass` for `fastcgi_param` and for `include
/// fastcgi_params`; `None` for other directives.
pub(super) fn pass_of(directive: &Directive) -> Option<&'static str> {
    let file = directive.argument(0).rsplit('/').next().unwrap_or_default();
    match (directive.name.as_str(), file) {
        ("fastcgi_param", _) | ("include", "fastcgi_params" | "fastcgi.conf" | "fastcgi-php.conf") => {
            Some("fastcgi_pass")
        }
        ("uwsgi_param", _) | ("include", "uwsgi_params") => Some("uwsgi_pass"),
        ("scgi_param", _) | ("include", "scgi_params") => Some("scgi_pass"),
        _ => None,
    }
}

/// Returns name and value of a parameter; `None` if RockNet sets it itself. A value with variables counts as the usual
/// one.
pub(super) fn constant(directive: &Directive) -> Option<(&str, &str)> {
    let (name, value) = (directive.argument(0), directive.argument(1));
    let is_param = !directive.is("include") && pass_of(directive).is_some();
    (is_param && !value.contains('$') && !USUAL.contains(&name)).then_some((name, value))
}

/// Returns the parameters that apply in a block, such as a `location`. `own`: parameters in the block itself. `outer`:
/// parameters that apply around it. As in nginx, a block with a `fastcgi_param` of its own inherits no `fastcgi_param`,
/// and likewise for `uwsgi_param` and `scgi_param`.
pub(super) fn effective<'a>(own: &[&'a Directive], outer: &[&'a Directive]) -> Vec<&'a Directive> {
    let is_replaced = |directive: &&&Directive| own.iter().any(|other| pass_of(other) == pass_of(directive));
    let inherited = outer.iter().filter(|directive| !is_replaced(directive));
    own.iter().chain(inherited).copied().collect()
}

/// Returns the parameters for a back end as entries of the key `params`. `pass`: directive of the back end.
pub(super) fn entries(params: &[&Directive], pass: &str) -> Vec<(String, Value)> {
    let mut entries: Vec<(String, Value)> = Vec::new();
    let of_pass = params.iter().filter(|directive| pass_of(directive) == Some(pass));
    for (name, value) in of_pass.filter_map(|directive| constant(directive)) {
        entries.retain(|(known, _)| known != name);
        entries.push((name.to_owned(), Value::text(value)));
    }
    entries
}

/// Notes the parameters of a named location that its back end does not take.
pub(super) fn note_without_pass(own: &[&Directive], pass: Option<&Directive>, notes: &mut dyn Notes) {
    for directive in own.iter().filter(|directive| constant(directive).is_some()) {
        let name = pass_of(directive).filter(|name| !pass.is_some_and(|pass| pass.is(name)));
        if let Some(name) = name {
            note_unused(directive, name, notes);
        }
    }
}

/// Notes a parameter that no back end takes. `pass`: directive of the back end.
pub(super) fn note_unused(directive: &Directive, pass: &str, notes: &mut dyn Notes) {
    notes.unneeded(directive, &format!("no `{pass}` takes it"));
}
