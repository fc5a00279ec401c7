//! Translates the page for clients that have to sign in: `error_page 401 = @sign_in`.

use rocknet_config::model::SignIn;
use rocknet_config::template;

use crate::directive::Directive;
use crate::placeholder;

use super::service::location_of;
use super::variables::Variables;

/// Returns true for an `error_page` for clients that have to sign in.
pub(super) fn is_for_unauthorized(directive: &Directive) -> bool {
    directive.is("error_page") && directive.arguments.iter().rev().skip(1).any(|word| word == "401")
}

/// Returns the value of `sign_in` for the page of status 401, and true if nginx sends the page without a redirect.
/// Returns `None` if there is no counterpart, or if the page becomes an entry of `errors` instead.
pub(super) fn sign_in(page: &Directive, server: &Directive, variables: &Variables) -> Option<(String, bool)> {
    let (target, words) = page.arguments.split_last()?;
    // `error_page 401 =302 $url`, with a field of the authorization service's response in `$url`.
    if let Some(field) = variables.fields.get(target) {
        return (field == "location").then(|| (SignIn::LOCATION.to_owned(), false));
    }
    let is_redirect = |status: &str| matches!(status, "301" | "302" | "303" | "307" | "308");
    if target.starts_with('@') {
        let is_named = |d: &&Directive| d.is("location") && d.argument(0) == target;
        let location = server.children().iter().find(is_named)?;
        let is_known = |d: &Directive| matches!(d.name.as_str(), "internal" | "add_header" | "return" | "auth_request");
        let mut returns = location.children().iter().filter(|d| d.is("return"));
        let returned = returns.next().filter(|_| location.children().iter().all(is_known))?;
        let url = match returned.words()[..] {
            [status, url] if is_redirect(status) => url,
            [url] => url,
            _ => return None,
        };
        return Some((translated(url, variables)?, false));
    }
    let response = words.iter().find_map(|word| word.strip_prefix('='));
    match response {
        Some(status) if is_redirect(status) => Some((translated(target, variables)?, false)),
        None if target.contains("://") => Some((translated(target, variables)?, false)),
        None => None,
        // `error_page 401 = /oauth2/sign_in`.
        Some(_) => {
            let page = translated(target, variables)?;
            let location = location_of(target, server);
            let is_origin = |d: &Directive| {
                d.is("proxy_set_header") && d.argument(0).eq_ignore_ascii_case("X-Auth-Request-Redirect")
            };
            let has_origin = location.is_some_and(|location| location.children().iter().any(is_origin));
            // After the login, oauth2-proxy redirects to the address in this field or in the parameter `rd`.
            match has_origin && !page.contains('?') {
                true => Some((format!("{page}?rd={{target}}"), true)),
                false => Some((page, true)),
            }
        }
    }
}

/// Returns a URL with placeholders in place of variables. A URL of this site becomes a path. Returns `None` for a text
/// that is neither a path nor a URL, and if a variable has no placeholder.
fn translated(url: &str, variables: &Variables) -> Option<String> {
    let url = variables.expand(url);
    let is_url = url.starts_with('/') || url.starts_with("http://") || url.starts_with("https://");
    let url = url.replace("$server_name", "$host");
    let is_own = url.starts_with("$scheme://$host/") || url.starts_with("$scheme://$http_host/");
    let url = match is_own {
        true => url
            .split_once("://")?
            .1
            .split_once('/')
            .map(|(_, path)| format!("/{path}"))?,
        false => url,
    };
    placeholder::from_nginx(&url, template::Scope::Request).filter(|_| is_url || is_own)
}
