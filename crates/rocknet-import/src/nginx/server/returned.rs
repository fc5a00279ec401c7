//! Responses of a server to every request: `return` outside of locations, and redirects to HTTPS.

use crate::condition::Conditions;
use crate::directive::Directive;
use crate::document::{Notes, RuleStage, SiteRule};
use crate::hosts::{HostDraft, HttpsRedirect};
use crate::value::Value;

use super::super::action::{self, ReturnAction};
use super::super::conditional::always_returns;
use super::super::place::Locations;
use super::super::restriction::refuses;

/// Returns the `return` of `location /` that redirects to HTTPS, if other locations are only for challenges of
/// certificate authorities.
pub(super) fn redirect_of_root<'a>(locations: &Locations<'a>) -> Option<&'a Directive> {
    let is_challenge =
        |location: &&&Directive| location.arguments.iter().any(|word| word.contains("/.well-known/acme"));
    let mut others = locations.all.iter().filter(|location| !is_challenge(location));
    let (root, None) = (others.next()?, others.next()) else {
        return None;
    };
    let [returned] = root.children() else { return None };
    let is_redirect = returned.is("return") && matches!(action::parse(returned), Some(ReturnAction::Https(_)));
    (root.words() == ["/"] && is_redirect).then_some(returned)
}

/// Returns true if the first `return` of a server has a counterpart, and responds to every request. Returns false if a
/// directive before it may end the evaluation, so that requests reach a location.
pub(super) fn answers_all(returned: &Directive, server: &Directive, host: &HostDraft) -> bool {
    let is_translated = match action::parse(returned) {
        // A server with TLS that redirects to the host of the request redirects in a loop, so it has no counterpart.
        Some(ReturnAction::Https(target)) => !host.is_tls() || !target.host.is_empty(),
        Some(ReturnAction::Respond { status, .. }) => !(300..400).contains(&status),
        Some(ReturnAction::Redirect { .. }) => true,
        None => refuses(returned),
    };
    is_translated && always_returns(server)
}

/// Translates a `return` outside of locations, which applies to every path of the server. `guard`: alternative sets of
/// conditions, one of which must hold for nginx to reach it.
pub(super) fn return_from_server(directive: &Directive, guard: &[Conditions], host: &mut HostDraft) {
    if host.site.settings.restricts() && directive.argument(0) != "403" {
        let message = "the access control of the site applies first, and nginx returns without it";
        host.site.differs(directive, message);
    }
    // True for a `rewrite` with `last` or `break`, after which nginx skips this `return`. If rules of locations follow,
    // `Site::order_rules` has removed the key `last` from the translated rule. RockNet then applies the `return` too.
    let has_lost_last = |rule: &SiteRule| {
        let ends = [" last", " break"].iter().any(|flag| rule.directive.ends_with(flag));
        rule.has("rewrite") && rule.stage == RuleStage::Site && ends && !rule.has("last")
    };
    if host.site.rules.iter().any(has_lost_last) {
        let message =
            "it also applies to requests for which nginx skips it, after an earlier `rewrite` with `last` or `break`";
        host.site.differs(directive, message);
    }
    let is_guarded = guard.iter().any(|conditions| !conditions.is_empty());
    let is_for_every_path = true;
    if let Some(keys) = action::keys(directive, is_for_every_path).filter(|_| is_guarded) {
        let every = ["/*".to_owned()];
        action::add(directive, &mut host.site, RuleStage::Site, None, &every, guard, &keys);
        // `order_rules` has run already, so the new rule is moved before those of locations.
        return host.site.rules.sort_by_key(|rule| rule.stage);
    }
    match action::parse(directive) {
        Some(ReturnAction::Https(target)) if !host.is_tls() => host.https_redirect = Some(target),
        Some(ReturnAction::Https(target)) if !target.host.is_empty() => redirect_all(directive, &target, host),
        Some(ReturnAction::Redirect { target, status }) => {
            if !target.contains("{*}") {
                host.site
                    .differs(directive, "RockNet adds the query of the request to the target");
            }
            host.site.redirect("/*", &target, status, directive.line);
        }
        Some(ReturnAction::Respond { status, body }) if !(300..400).contains(&status) => {
            let mut keys = vec![("respond", Value::Number(status))];
            keys.extend(body.map(|body| ("body", Value::Text(body))));
            host.site.rule(directive, keys);
            // As above, the new rule is moved before those of locations.
            host.site.rules.sort_by_key(|rule| rule.stage);
        }
        _ if refuses(directive) => {
            host.site.settings.close(directive.line);
            host.site.differs(directive, "clients get 403, without the text");
        }
        _ => host.site.skip(
            directive,
            "write a rule, [[site.\"…\".rule]], with `redirect` or `respond`",
        ),
    }
}

/// Returns the redirect of a `rewrite` that redirects every path to HTTPS, as `return` does; `None` for other rewrites.
pub(super) fn whole_redirect(directive: &Directive) -> Option<HttpsRedirect> {
    let [expression, target, flag @ ("permanent" | "redirect")] = directive.words()[..] else {
        return None;
    };
    let status = if flag == "permanent" { "301" } else { "302" };
    let target = target.trim_end_matches('?');
    let target = match expression {
        "^" | ".*" | "^.*$" | "^.*" => target.to_owned(),
        "^(.*)$" | "^(.*)" | "(.*)" => format!("{}$request_uri", target.strip_suffix("$1")?),
        "^/(.*)$" | "^/(.*)" => format!("{}$request_uri", target.strip_suffix("/$1")?),
        _ => return None,
    };
    let synthetic = Directive::new("return", vec![status.to_owned(), target], directive.line);
    match action::parse(&synthetic)? {
        ReturnAction::Https(to) => Some(to),
        _ => None,
    }
}

/// Redirects every path of a site with TLS to another host.
pub(super) fn redirect_all(directive: &Directive, to: &HttpsRedirect, host: &mut HostDraft) {
    let target = format!("https://{}/{{*}}", to.host);
    host.site.redirect("/*", &target, to.status, directive.line);
}

/// Translates the redirects of certbot: `if ($host = a.example) { return 301 https://$host$request_uri; }` for each
/// name, then `return 404`. `certbot` holds each `if` with its name and status; `returned` is the `return` after them.
pub(super) fn https_by_certbot(
    certbot: &[(&Directive, &str, u64)],
    returned: Option<&Directive>,
    host: &mut HostDraft,
) {
    host.https_redirect = Some(HttpsRedirect {
        host: String::new(),
        status: certbot[0].2,
    });
    let covers_all = host
        .names
        .iter()
        .all(|name| certbot.iter().any(|(_, covered, _)| covered == name));
    if !covers_all {
        let message = "every name of the server is redirected to HTTPS, not only this one";
        host.site.differs(certbot[0].0, message);
    }
    if let Some(directive) = returned {
        host.site
            .unneeded(directive, "names without a site get 404 by themselves");
    }
}
