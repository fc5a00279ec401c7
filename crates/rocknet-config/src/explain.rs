//! Effective settings of a URL, with the file and line of each, for `rocknet explain`.

use crate::binding::{SettingRows, host, list, quoted};
use crate::choice::Choice;
use crate::keys::{self, Section};
use crate::model::{
    Conditions, Config, HostPattern, Listen, Pattern, RequestScheme, Route, Rule, RuleAction, Settings, Site,
};

pub use crate::binding::{EffectiveSetting, SettingGroup, pattern};

/// Site and route of a URL, with their effective settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<'c> {
    /// The site.
    pub site: &'c Site,
    /// The route; `None`: no route of the site matches the path.
    pub route: Option<&'c Route>,
    /// Effective settings, in the order of their groups.
    pub settings: Vec<EffectiveSetting>,
}

/// Returns the effective settings of a host name, a port and a decoded path; `None` if no site matches. If a port is
/// given, only sites that listen on it are considered.
pub fn explain<'c>(config: &'c Config, host: &str, port: Option<u16>, path: &str) -> Option<Explanation<'c>> {
    let site = site(config, host, port)?;
    let route = route(site, path);
    let mut settings = effective_settings(site, route);
    settings.extend(rules(site, path));
    settings.sort_by_key(|setting| setting.group);
    Some(Explanation { site, route, settings })
}

/// Returns the site of a host name: the site with that name, else the site with the longest matching wildcard, else a
/// catch-all site, which has no host names. If `host` is an IP address, a catch-all site that listens on this address
/// is preferred to the other catch-all sites. If a port is given, only sites that listen on it are considered. Returns
/// `None` if no site matches.
pub fn site<'c>(config: &'c Config, host: &str, port: Option<u16>) -> Option<&'c Site> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.trim_matches(['[', ']']).parse().ok();
    let listens = |listen: &Listen| match listen {
        Listen::Tcp { port: bound, .. } => port.is_none_or(|port| port == *bound),
        Listen::Unix(_) => port.is_none(),
    };
    let rank = |site: &Site| {
        let named = site.names.iter().filter_map(|name| match name {
            HostPattern::Exact(name) if *name == host => Some(usize::MAX),
            HostPattern::Wildcard(name) => {
                let below = host.strip_suffix(name.as_str())?;
                // Catch-all sites have the ranks 0 and 1.
                (below.len() > 1 && below.ends_with('.')).then_some(name.len() + 2)
            }
            HostPattern::Exact(_) => None,
        });
        // Among the catch-all sites, one that listens on the address `host` takes precedence.
        let listens_on_it =
            |listen: &Listen| matches!(listen, Listen::Tcp { address: Some(bound), .. } if Some(*bound) == address);
        let unnamed = site
            .names
            .is_empty()
            .then(|| usize::from(site.listen.iter().any(listens_on_it)));
        named.max().or(unnamed)
    };
    let candidates = config.sites.iter().filter(|site| site.listen.iter().any(listens));
    candidates
        .filter_map(|site| Some((rank(site)?, site)))
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, site)| site)
}

/// Returns the most specific route of a path: exact, then the longest prefix, then the glob with the most characters
/// other than `*`, then the longest regular expression. Returns `None` if no route matches.
pub fn route<'c>(site: &'c Site, path: &str) -> Option<&'c Route> {
    let rank = |pattern: &Pattern| match pattern {
        Pattern::Exact(_) => (3, 0),
        Pattern::Prefix(prefix) => (2, prefix.len()),
        Pattern::Glob(glob) => (1, glob.chars().filter(|c| *c != '*').count()),
        // The longest expression is the first in the order of the patterns.
        Pattern::Regex(_) => (0, 0),
    };
    let matching = site.routes.iter().filter(|route| route.pattern.matches(path));
    // The routes are sorted by pattern, regardless of their order in the file. Of equal ranks, the first takes
    // precedence. `max_by_key` returns the last one, so the order is reversed.
    matching.rev().max_by_key(|route| rank(&route.pattern))
}

/// Returns the rules that may apply to a path: those whose `path` matches, and those without `path`. Each is rendered
/// with its conditions and its action.
pub fn rules(site: &Site, path: &str) -> impl Iterator<Item = EffectiveSetting> {
    let numbered = site.rules.iter().zip(1..);
    let matching = numbered.filter(move |(rule, _)| {
        let paths = &rule.when.paths;
        paths.is_empty() || paths.iter().any(|pattern| pattern.matches(path))
    });
    matching.map(|(rule, number)| rule_row(rule, number))
}

/// Returns all rules of a site, each with its conditions and its action.
pub fn all_rules(site: &Site) -> impl Iterator<Item = EffectiveSetting> {
    site.rules.iter().zip(1..).map(|(rule, number)| rule_row(rule, number))
}

fn rule_row(rule: &Rule, number: usize) -> EffectiveSetting {
    EffectiveSetting {
        key: format!("rule {number}"),
        value: rendered_rule(rule),
        span: Some(rule.span.clone()),
        group: SettingGroup::Rules,
    }
}

/// Renders the conditions and the action of a rule as TOML.
fn rendered_rule(rule: &Rule) -> String {
    let mut parts = paths(&rule.when);
    match &rule.action {
        RuleAction::Pass => {}
        RuleAction::Rewrite(to) => parts.push(format!("rewrite = {}", quoted(to))),
        RuleAction::Redirect { to, status } => {
            parts.extend([format!("redirect = {}", quoted(to)), format!("status = {status}")]);
        }
        RuleAction::Respond { status, body } => {
            parts.push(format!("respond = {status}"));
            parts.extend(body.iter().map(|body| format!("body = {}", quoted(&truncated(body)))));
        }
    }
    if rule.resolved {
        parts.push("resolved = true".to_owned());
    }
    if rule.last {
        parts.push("last = true".to_owned());
    }
    parts.extend(conditions(&rule.when));
    if !rule.unless.is_empty() {
        let exceptions = rule.unless.iter().map(|when| {
            let parts: Vec<_> = paths(when).into_iter().chain(conditions(when)).collect();
            format!("{{ {} }}", parts.join(", "))
        });
        parts.push(format!("unless = {}", list(exceptions)));
    }
    format!("{{ {} }}", parts.join(", "))
}

/// Renders `path`, if the conditions have it.
fn paths(when: &Conditions) -> Vec<String> {
    match &when.paths[..] {
        [] => Vec::new(),
        [one] => vec![format!("path = {}", quoted(&pattern(one)))],
        several => {
            let paths = several.iter().map(|path| quoted(&pattern(path)));
            vec![format!("path = {}", list(paths))]
        }
    }
}

/// Renders the conditions other than `path`.
fn conditions(when: &Conditions) -> Vec<String> {
    let mut parts = Vec::new();
    let texts = |all: Vec<String>| list(all.iter().map(|text| quoted(text)));
    if !when.hosts.is_empty() || !when.host_regexes.is_empty() {
        let regexes = when.host_regexes.iter().map(|regex| quoted(&regex.to_string()));
        parts.push(format!("host = {}", list(when.hosts.iter().map(host).chain(regexes))));
    }
    if !when.methods.is_empty() {
        parts.push(format!("method = {}", texts(when.methods.clone())));
    }
    for (key, patterns) in [
        ("header", &when.headers),
        ("cookie", &when.cookies),
        ("query", &when.query),
    ] {
        let pairs: Vec<_> = (patterns.iter())
            .map(|(name, pattern)| format!("{} = {}", quoted(name), quoted(&pattern.to_string())))
            .collect();
        if !pairs.is_empty() {
            parts.push(format!("{key} = {{ {} }}", pairs.join(", ")));
        }
    }
    if !when.clients.is_empty() {
        let ranges = when.clients.iter().map(ToString::to_string).collect();
        parts.push(format!("client = {}", texts(ranges)));
    }
    if let Some(condition) = &when.existence {
        let kinds = condition.kinds.iter().map(|kind| quoted(kind.word()));
        parts.push(format!("exists = {}", list(kinds)));
        parts.extend(condition.at.iter().map(|at| format!("exists_at = {}", quoted(at))));
    }
    if let Some(secure) = when.secure {
        let scheme = if secure {
            RequestScheme::Https
        } else {
            RequestScheme::Http
        };
        parts.push(format!("scheme = {}", quoted(scheme.word())));
    }
    parts
}

/// Returns the first characters of a text, followed by `…` if the text is longer.
fn truncated(text: &str) -> String {
    match text.char_indices().nth(MAX_BODY_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Maximum number of characters of a response body that are shown, so that a rule stays readable on one line.
const MAX_BODY_CHARS: usize = 60;

/// Returns the effective settings of a site, or of one of its routes: the settings that were written or differ from
/// their default. The groups `Site`, `Filters` and `Limits` also list settings at their defaults. The group
/// `Controller` lists such settings if a controller is set, and the group `Files` if a root is set.
pub fn effective_settings(site: &Site, route: Option<&Route>) -> Vec<EffectiveSetting> {
    let settings = route.map_or(&site.settings, |route| &route.settings);
    let defaults = Settings::default();
    let mut rows = SettingRows::new(&settings.key_spans);
    // A route can have keys that a site cannot have.
    let of_routes = keys::within(Section::Route).filter(|key| !key.sections.contains(&Section::Site));
    let of_routes = of_routes.filter(|_| route.is_some());
    for key in keys::within(Section::Site).chain(of_routes) {
        let Some(group) = key.group else { continue };
        rows.group = group;
        rows.show_defaults = match group {
            SettingGroup::Site | SettingGroup::Filters | SettingGroup::Limits => true,
            SettingGroup::Access | SettingGroup::Rules | SettingGroup::Handler => false,
            SettingGroup::Controller => settings.controller.is_some(),
            SettingGroup::Files => settings.root.is_some(),
        };
        // A key can set a value of the site itself, of its settings, or of both.
        if let Some(key) = key.bound::<Site>() {
            rows.key(&key, site, None);
        }
        if let Some(key) = key.bound::<Settings>() {
            rows.key(&key, settings, Some(&defaults));
        }
    }
    let mut all = rows.into_settings();
    all.sort_by_key(|setting| setting.group);
    all
}

#[cfg(test)]
mod tests;
