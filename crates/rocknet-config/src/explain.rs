//! Which settings hold for a URL, and in which file and line each was written: what `rocknet explain` shows.

use crate::check::matches;
use crate::model::{
    AccessFormat, CertificateSource, Cgi, Config, Fallback, HostPattern, Listen, LogTarget, Pattern, Place, Priority,
};
use crate::model::{Route, Rule, RuleAction, RunOn, Settings, Site, SiteTls, Symlinks};
use crate::units;

/// One setting as it applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// `root`, `headers.X-Frame-Options`, `redirects./old`
    pub key: String,
    /// As it would be written.
    pub value: String,
    /// Where it was written; `None` for a default.
    pub place: Option<Place>,
}

/// The site and route that answer, and all that holds there.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation<'c> {
    pub site: &'c Site,
    pub route: Option<&'c Route>,
    pub settings: Vec<Applied>,
}

/// What holds for a host name, a port and a decoded path. The port narrows the sites to those that listen there.
pub fn explain<'c>(config: &'c Config, host: &str, port: Option<u16>, path: &str) -> Option<Explanation<'c>> {
    let site = site(config, host, port)?;
    let route = route(site, path);
    let mut settings = applied(site, route);
    settings.extend(rules(site, path));
    Some(Explanation { site, route, settings })
}

/// The site for a name: the name itself, then the longest wildcard, then the site that answers to every name.
pub fn site<'c>(config: &'c Config, host: &str, port: Option<u16>) -> Option<&'c Site> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.trim_matches(['[', ']']).parse().ok();
    let listens = |listen: &Listen| match listen {
        Listen::Tcp { port: own, .. } => port.is_none_or(|port| port == *own),
        Listen::Unix(_) => port.is_none(),
    };
    let rank = |site: &Site| {
        let named = site.names.iter().filter_map(|name| match name {
            HostPattern::Exact(name) if *name == host => Some(usize::MAX),
            HostPattern::Wildcard(name) => {
                let below = host.strip_suffix(name.as_str())?;
                (below.len() > 1 && below.ends_with('.')).then_some(name.len() + 2)
            }
            HostPattern::Exact(_) => None,
        });
        // Among those that answer to every name, one that listens at the very address comes first.
        let own = |listen: &Listen| matches!(listen, Listen::Tcp { address: Some(own), .. } if Some(*own) == address);
        let unnamed = site.names.is_empty().then(|| usize::from(site.listen.iter().any(own)));
        named.max().or(unnamed)
    };
    let candidates = config.sites.iter().filter(|site| site.listen.iter().any(listens));
    candidates
        .filter_map(|site| Some((rank(site)?, site)))
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, site)| site)
}

/// The most specific route that holds a path: exact, then the longest prefix, then the glob with the most letters.
pub fn route<'c>(site: &'c Site, path: &str) -> Option<&'c Route> {
    let rank = |pattern: &Pattern| match pattern {
        Pattern::Exact(_) => (3, 0),
        Pattern::Prefix(prefix) => (2, prefix.len()),
        Pattern::Glob(glob) => (1, glob.chars().filter(|c| *c != '*').count()),
    };
    let holds = site.routes.iter().filter(|route| matches(&route.pattern, path));
    // Routes are sorted by pattern, and among equals the first text wins: hence the reverse.
    holds.rev().max_by_key(|route| rank(&route.pattern))
}

/// The rules that a path may meet: what else they ask of a request is told with each.
pub fn rules(site: &Site, path: &str) -> impl Iterator<Item = Applied> {
    let numbered = site.rules.iter().zip(1..);
    let met = numbered.filter(move |(rule, _)| {
        let paths = &rule.when.paths;
        paths.is_empty() || paths.iter().any(|pattern| matches(pattern, path))
    });
    met.map(|(rule, number)| Applied {
        key: format!("rule {number}"),
        value: told(rule),
        place: Some(rule.place.clone()),
    })
}

/// The conditions of a rule and what it does, as they would be written.
fn told(rule: &Rule) -> String {
    let mut words = Vec::new();
    match &rule.when.paths[..] {
        [] => {}
        [one] => words.push(format!("path = {}", quoted(&pattern(one)))),
        several => {
            let paths = several.iter().map(|path| quoted(&pattern(path)));
            words.push(format!("path = {}", list(paths)));
        }
    }
    match &rule.action {
        RuleAction::Pass => {}
        RuleAction::Rewrite(to) => words.push(format!("rewrite = {}", quoted(to))),
        RuleAction::Redirect { to, status } => {
            words.extend([format!("redirect = {}", quoted(to)), format!("status = {status}")]);
        }
        RuleAction::Respond { status, .. } => words.push(format!("respond = {status}")),
    }
    if rule.last {
        words.push("last = true".to_owned());
    }
    let when = &rule.when;
    let texts = |all: &[String]| list(all.iter().map(|text| quoted(text)));
    if !when.hosts.is_empty() {
        words.push(format!("host = {}", list(when.hosts.iter().map(host))));
    }
    if !when.methods.is_empty() {
        words.push(format!("method = {}", texts(&when.methods)));
    }
    for (key, patterns) in [("header", &when.headers), ("query", &when.query)] {
        let pairs: Vec<_> = (patterns.iter())
            .map(|(name, pattern)| format!("{} = {}", quoted(name), quoted(pattern)))
            .collect();
        if !pairs.is_empty() {
            words.push(format!("{key} = {{ {} }}", pairs.join(", ")));
        }
    }
    if let Some(secure) = when.secure {
        words.push(format!("scheme = {}", quoted(if secure { "https" } else { "http" })));
    }
    format!("{{ {} }}", words.join(", "))
}

/// Every setting of a site, or of one of its routes, as it applies.
pub fn applied(site: &Site, route: Option<&Route>) -> Vec<Applied> {
    let settings = route.map_or(&site.settings, |route| &route.settings);
    let mut all = Vec::new();
    let mut add = |key: &str, value: String| {
        let place = settings.places.get(key).cloned();
        all.push(Applied {
            key: key.to_owned(),
            value,
            place,
        });
    };
    add("listen", list(site.listen.iter().map(listen)));
    if !site.names.is_empty() {
        add("aliases", list(site.names.iter().skip(1).map(host)));
    }
    add("tls", tls(site.tls.as_ref()));
    add("log", access_log(site));
    each_setting(settings, &mut add);
    all
}

/// The short form where it says all, else what differs between sites most.
fn tls(tls: Option<&SiteTls>) -> String {
    let Some(tls) = tls else { return quoted("off") };
    let file = |path: &std::path::Path| quoted(&path.to_string_lossy());
    match &tls.source {
        CertificateSource::Auto => quoted("auto"),
        CertificateSource::Local => quoted("local"),
        CertificateSource::Files(all) => {
            let (certs, keys) = (
                all.iter().map(|one| file(&one.cert)),
                all.iter().map(|one| file(&one.key)),
            );
            format!("{{ cert = {}, key = {} }}", list(certs), list(keys))
        }
    }
}

fn each_setting(settings: &Settings, add: &mut dyn FnMut(&str, String)) {
    if let Some(root) = &settings.root {
        add("root", quoted(&root.to_string_lossy()));
    }
    if let Some(user) = &settings.user {
        add("user", quoted(user));
    }
    if let Some(php) = &settings.php {
        add("php", quoted(&php.to_string()));
    }
    if let Some(cgi) = &settings.cgi {
        add("cgi", written_cgi(cgi));
    }
    if let Some(proxy) = &settings.proxy {
        add(
            "proxy",
            list(proxy.to.iter().map(|upstream| quoted(&upstream.upstream.to_string()))),
        );
    }
    if let Some(application) = &settings.application {
        let places = application.to.iter().map(|host| quoted(&host.to_string()));
        add(application.protocol.key(), list(places));
    }
    add("index", list(settings.index.iter().map(|name| quoted(name))));
    add("browse", settings.browse.to_string());
    if !settings.try_paths.is_empty() {
        add("try", list(settings.try_paths.iter().map(|path| quoted(path))));
    }
    match &settings.fallback {
        Fallback::Usual => {}
        Fallback::Nothing => add("fallback", "false".to_owned()),
        Fallback::Path(path) => add("fallback", quoted(path)),
    }
    if let Some(controller) = &settings.controller {
        let run_on = match settings.run_on {
            RunOn::Worker => "worker",
            RunOn::Network => "network",
        };
        add("controller", quoted(&controller.to_string()));
        match settings.isolate {
            true => add("isolate", true.to_string()),
            false => add("run_on", quoted(run_on)),
        }
    }
    add("compress", settings.compress.to_string());
    let symlinks = match settings.symlinks {
        Symlinks::Inside => "inside",
        Symlinks::Owner => "owner",
        Symlinks::All => "all",
    };
    add("symlinks", quoted(symlinks));
    if settings.internal {
        add("internal", "true".to_owned());
    }
    let priority = match settings.priority {
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Low => "low",
    };
    add("priority", quoted(priority));
    add("limits.body_size", quoted(&units::show_size(settings.body_size)));
    add("limits.body_memory", quoted(&units::show_size(settings.body_memory)));
    add(
        "limits.answer_timeout",
        quoted(&units::show_duration(settings.answer_timeout)),
    );
    for (name, value) in &settings.headers {
        add(&format!("headers.{name}"), quoted(value));
    }
    for (status, page) in &settings.errors {
        add(&format!("errors.{status}"), quoted(page));
    }
    for redirect in &settings.redirects {
        let from = pattern(&redirect.from);
        let value = format!("{{ to = {}, status = {} }}", quoted(&redirect.to), redirect.status);
        add(&format!("redirects.{from}"), value);
    }
    for (page, files) in &settings.push {
        let value = list(files.iter().map(|path| quoted(path)));
        add(&format!("push.{}", pattern(page)), value);
    }
}

/// The short form where it says all.
fn written_cgi(cgi: &Cgi) -> String {
    let folder = quoted(&cgi.folder);
    if *cgi == Cgi::at(cgi.folder.clone()) {
        return folder;
    }
    let mut words = vec![
        format!("folder = {folder}"),
        format!("programs = {}", cgi.programs),
        format!("queue = {}", quoted(&units::show_duration(cgi.queue))),
        format!("time = {}", quoted(&units::show_duration(cgi.time))),
        format!("output = {}", quoted(&units::show_size(cgi.output))),
    ];
    // Their values may be secrets.
    if !cgi.params.is_empty() {
        let names: Vec<_> = cgi.params.keys().map(|name| format!("{} = …", quoted(name))).collect();
        words.push(format!("params = {{ {} }}", names.join(", ")));
    }
    format!("{{ {} }}", words.join(", "))
}

/// A pattern as it is written.
pub fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Exact(text) | Pattern::Glob(text) => text.clone(),
        Pattern::Prefix(prefix) => format!("{prefix}*"),
    }
}

fn access_log(site: &Site) -> String {
    let target = match &site.access.target {
        LogTarget::Off => quoted("off"),
        LogTarget::Stdout => quoted("stdout"),
        LogTarget::Stderr => quoted("stderr"),
        LogTarget::File(path) => quoted(&path.to_string_lossy()),
    };
    let format = match site.access.format {
        AccessFormat::Common => "common",
        AccessFormat::Combined => "combined",
        AccessFormat::Json => "json",
    };
    format!("{{ access = {target}, format = {} }}", quoted(format))
}

fn listen(listen: &Listen) -> String {
    match listen {
        Listen::Tcp { address: None, port } => port.to_string(),
        Listen::Tcp {
            address: Some(address),
            port,
        } => quoted(&std::net::SocketAddr::new(*address, *port).to_string()),
        Listen::Unix(path) => quoted(&format!("unix:{}", path.display())),
    }
}

fn host(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => quoted(name),
        HostPattern::Wildcard(name) => quoted(&format!("*.{name}")),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
