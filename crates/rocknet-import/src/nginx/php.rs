//! Translates locations that pass scripts to PHP.

use crate::directive::Directive;
use crate::document::{Notes, Site};
use crate::proxy::{ProxyServer, ProxySettings};
use crate::units;
use crate::value::Value;

use super::place::{LocationMatch, matched};
use super::scope::{ConfigLevel, Scope};
use super::upstream::Upstreams;

/// Returns the address of the php-fpm of a location for PHP; `None` for other locations.
pub(super) fn php_address(location: &Directive, upstreams: &Upstreams) -> Option<ProxySettings> {
    let LocationMatch::Expression(expression, _) = matched(location) else {
        return None;
    };
    let pass = location.children().iter().find(|d| d.is("fastcgi_pass"))?;
    if !expression.contains("\\.php") {
        return None;
    }
    let mut servers = upstreams.get(pass.argument(0)).cloned().unwrap_or_default();
    if servers.servers.is_empty() {
        servers.servers.push(ProxyServer::new(pass.argument(0)));
    }
    Some(servers)
}

/// Translates a location that passes scripts to PHP.
pub(super) fn translate(location: &Directive, expression: &str, site: &mut Site, upstreams: &Upstreams) {
    let servers = php_address(location, upstreams).unwrap_or_default();
    let mut rest = Vec::new();
    let mut scope = Scope::new(ConfigLevel::Location);
    for directive in location.children() {
        match directive.name.as_str() {
            "fastcgi_pass" => {
                if let Some(server) = servers.servers.first() {
                    site.settings.set("php", Value::text(&server.url), directive.line);
                }
                if servers.servers.len() > 1 {
                    site.differs(directive, "`php` takes one address, the first of the group");
                }
            }
            "try_files" | "fastcgi_param" if !directive.arguments.iter().any(|a| a.contains('$') || a == "=404") => {
                site.skip(
                    directive,
                    "it has no counterpart for PHP; variables can be set in the pool of php-fpm",
                );
            }
            "try_files" | "fastcgi_param" | "include" | "fastcgi_read_timeout" | "fastcgi_buffering" => {
                rest.push(directive);
            }
            _ => scope.read(directive, upstreams),
        }
    }
    for directive in rest {
        match directive.name.as_str() {
            "fastcgi_read_timeout" => match units::duration_of(directive.argument(0)) {
                Some(time) => site
                    .settings
                    .set_entry("limits", "answer_timeout", Value::Text(time), directive.line),
                None => site.skip(directive, "write `limits.answer_timeout`"),
            },
            "include" => scope.read(directive, upstreams),
            _ => site.unneeded(
                directive,
                "RockNet looks up scripts and sets their variables: docs/php.md",
            ),
        }
    }
    scope.finish();
    site.notes.append(&mut scope.notes);
    let for_every_script = [
        "\\.php$",
        "\\.php",
        "[^/]\\.php(/|$)",
        "^(.+\\.php)(.*)$",
        "\\.php(/|$)",
        "\\.php(?:$|/)",
    ];
    if !for_every_script.contains(&expression) {
        site.weakens(
            location,
            "`php` runs every `*.php` file, not only these: write routes with `php = false` or `deny`",
        );
    }
    if !scope.settings.is_empty() {
        let route = site.route("*.php", location.line);
        route.merge(scope.settings);
    }
}
