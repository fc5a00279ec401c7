//! Translates locations that pass scripts to PHP.

use crate::directive::Directive;
use crate::document::{Notes, RuleStage, Site};
use crate::proxy::{ProxyServer, ProxySettings};
use crate::settings::Settings;
use crate::units;
use crate::value::Value;

use super::cache;
use super::place::{LocationMatch, Locations, is_for_every_script, matched};
use super::precedence::{are_disjoint, note_cancelled, note_overridden};
use super::restriction::{is_denied, refuses, restricts};
use super::scope::{ConfigLevel, Scope};
use super::upstream::{ALL_DOWN, Upstreams, with_port};

/// Advice for a condition in a location of scripts.
const RESTRICTION: &str = "write a rule with this condition, `path = \"*.php\"` and `respond = 403`";

/// Message for parameters, which an address of php-fpm does not take.
pub(super) const NO_PARAMS: &str = "an address of php-fpm takes no variables: write php = { env = {…}, ini = {…} }, with \
                                    which RockNet runs php-fpm, or set them in the pool";

/// Returns the php-fpm servers of a location for PHP; `None` for other locations.
pub(super) fn php_address(location: &Directive, upstreams: &Upstreams) -> Option<ProxySettings> {
    let LocationMatch::Expression(expression, _) = matched(location) else {
        return None;
    };
    let pass = location.children().iter().find(|d| d.is("fastcgi_pass"))?;
    if !expression.contains("\\.php") {
        return None;
    }
    let mut servers = upstreams.get(pass.argument(0)).cloned().unwrap_or_default();
    for server in &mut servers.servers {
        // The default port of a server in an `upstream` block.
        server.url = with_port(&server.url, 80);
    }
    if servers.servers.is_empty() {
        servers.servers.push(ProxyServer::new(pass.argument(0)));
    }
    Some(servers)
}

/// Notes the servers of a group that `php` does not take, and a group whose servers are all `down`.
pub(super) fn note_servers(group: &ProxySettings, directive: &Directive, notes: &mut dyn Notes) {
    if group.is_drained() {
        notes.differs(directive, ALL_DOWN);
    }
    if group.servers.len() > 1 {
        notes.differs(directive, "`php` takes one address of the group");
    }
}

/// Translates a location that passes scripts to PHP. The address becomes `php` of the site. Most other settings become
/// those of a route for `*.php`. But `cache` becomes a setting of the site, because the route does not apply to the
/// paths of a front controller, such as `/article/7`.
///
/// `restricted`: patterns of earlier expressions that restrict access. `server`: scope of the server. `root`: settings
/// that the caller merges into those of the site.
///
/// Returns true if no earlier restriction can apply to scripts. Otherwise a route for `*.php` could take precedence
/// over the restriction. This function then adds the route only if the location itself restricts access, with a note.
/// The caller must not add settings to the route, because they could open scripts.
pub(super) fn translate<'a>(
    location: &'a Directive,
    expression: &str,
    site: &mut Site,
    locations: &Locations<'_>,
    upstreams: &Upstreams,
    restricted: &[String],
    (server, root): (&Scope<'a>, &mut Settings),
) -> bool {
    let servers = php_address(location, upstreams).unwrap_or_default();
    let mut scope = Scope::new(ConfigLevel::Location);
    for directive in location.children() {
        match directive.name.as_str() {
            "fastcgi_pass" => {
                if let Some(server) = servers.first_active() {
                    site.settings.set("php", Value::text(&server.url), directive.line);
                }
                note_servers(&servers, directive, site);
            }
            "internal" => {
                // Clients must not request the scripts. A front controller still runs for other paths, by `fallback`,
                // to which this rule does not apply.
                let keys = vec![
                    ("path", Value::Text(format!("~{expression}"))),
                    ("respond", Value::Number(404)),
                ];
                let outer = std::mem::replace(&mut site.stage, RuleStage::Expression);
                site.rule(directive, keys);
                site.stage = outer;
            }
            "fastcgi_param" if !directive.arguments.iter().any(|a| a.contains('$')) => param(directive, site),
            "try_files" if !directive.arguments.iter().any(|a| a.contains('$') || a == "=404") => {
                site.skip(
                    directive,
                    "scripts of PHP are looked up first, and a missing one gets `fallback`",
                );
            }
            "fastcgi_read_timeout" => match units::duration_of(directive.argument(0)) {
                Some(time) => site
                    .settings
                    .set_entry("limits", "answer_timeout", Value::Text(time), directive.line),
                None => site.skip(directive, "write `limits.answer_timeout`"),
            },
            "try_files" | "fastcgi_param" | "fastcgi_buffering" => site.unneeded(
                directive,
                "RockNet looks up scripts and sets their variables: docs/php.md",
            ),
            // A test for a missing script restricts nothing.
            "if" if directive
                .arguments
                .iter()
                .any(|word| word.contains("!-f") || word.contains("!-e")) =>
            {
                scope.read(directive, upstreams);
            }
            "if" | "location" if restricts(directive) => site.skip_restriction(directive, RESTRICTION),
            // A rewrite that is no redirect, such as `rewrite ^ /index.php break;`, keeps the scripts that it matches
            // from running, because nginx runs its target instead.
            "rewrite" if !matches!(directive.words().last(), Some(&("permanent" | "redirect"))) => {
                let message = "RockNet runs the requested scripts, not the target of the rewrite: write a rule, \
                               [[site.\"…\".rule]], with `path`, `unless` and `rewrite`";
                site.skip_restriction(directive, message);
            }
            "return" if refuses(directive) => site.skip_restriction(directive, RESTRICTION),
            _ => scope.read(directive, upstreams),
        }
    }
    scope.finish(Some(server));
    scope.remove_compression(&site.settings);
    cache::translate(&server.caches, &scope.caches, root, &mut scope.notes);
    site.notes.append(&mut scope.notes);
    // A later location may refuse the other scripts: `location ~ \.php$ { return 404; }`.
    let refuses_others = || {
        let is_this = |other: &&&Directive| other.line == location.line && other.arguments == location.arguments;
        let mut later = locations.all.iter().skip_while(|other| !is_this(other));
        later.any(|other| match matched(other) {
            LocationMatch::Expression(expression, _) => is_for_every_script(&expression) && is_denied(other),
            _ => false,
        })
    };
    if !is_for_every_script(expression) && !refuses_others() {
        site.weakens(
            location,
            "`php` runs every `*.php` file, not only these: write routes with `php = false` or `deny`",
        );
    }
    let scripts = ["*.php".to_owned()];
    match scope.settings.restricts() {
        true => note_overridden(location, &scripts, locations, site),
        false => note_cancelled(location, &scope.settings, &scripts, locations, site),
    }
    let is_disjoint = are_disjoint(restricted, &scripts);
    let restricts_scripts = scope.settings.restricts();
    if restricts_scripts && !is_disjoint {
        let message = "an earlier expression restricts access too, and may no longer take precedence";
        site.weakens(location, message);
    }
    if !restricts_scripts && !is_disjoint && !scope.settings.is_empty() {
        // Without this route, scripts run by `php` of the site, with the restriction of their path.
        let message = "an earlier expression restricts access, and a route for scripts could take precedence: write a \
             route with the same `allow`, `deny` and `auth`";
        site.skip(location, message);
    } else if !scope.settings.is_empty() {
        let route = site.route("*.php", location.line);
        route.merge(scope.settings);
    }
    is_disjoint
}

/// Notes a variable for scripts. The address of a php-fpm takes no variables, so they belong in its pool.
fn param(directive: &Directive, site: &mut Site) {
    const USUAL: [&str; 3] = ["HTTPS", "HTTP_PROXY", "REDIRECT_STATUS"];
    match USUAL.contains(&directive.argument(0)) {
        true => site.unneeded(directive, "RockNet sets the usual variables itself: docs/php.md"),
        false => site.skip(directive, NO_PARAMS),
    }
}
