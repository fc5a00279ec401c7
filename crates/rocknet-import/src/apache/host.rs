//! Translates a virtual host, or the directives of a file without virtual hosts.

use crate::directive::Directive;
use crate::document::{Notes, RuleStage};
use crate::hosts::{HostDraft, HostListener};
use crate::value::Value;

use super::alias;
use super::context::ServerContext;
use super::expires;
use super::forwarding::Forwarding;
use super::handler::{self, HandledFiles, PhpEffect};
use super::inherit;
use super::limit;
use super::php;
use super::proxy::ProxyDirectives;
use super::redirect;
use super::rewrite::{self, RewriteBlock};
use super::runners;
use super::section;
use super::setting::ApacheScope;
use super::tls::ApacheTls;
use super::traffic;

/// Translates the directives of a host. `block`: its section; `None` for a file without hosts. `global`: directives
/// outside of hosts that are not translated for each host.
pub(super) fn translate(
    directives: &[&Directive],
    block: Option<&Directive>,
    context: &ServerContext,
    global: &[&Directive],
) -> HostDraft {
    let mut host = HostDraft {
        directive: block.map_or_else(String::new, Directive::text),
        ..HostDraft::default()
    };
    host.site.line = block.map_or(1, |block| block.line);
    let mut proxies = ProxyDirectives::default();
    proxies.forwarding = Forwarding::of(directives.iter().copied(), block.is_none());
    let mut rewrites = RewriteBlock::default();
    let mut tls = ApacheTls::default();
    let mut scope = ApacheScope::new(context);
    // A file without a `<VirtualHost>` is taken for an `.htaccess`, in which the rules are those of a folder.
    rewrites.is_in_folder = block.is_none();
    // Apache applies first each `RewriteRule` of the host (stage `Site`), then the refusals of sections, then each
    // `RewriteRule` of a folder (stage `Rewrite`). The refusals get the stage `Expression`; another one between `Site`
    // and `Rewrite` would do as well. After a rewrite in a folder, Apache applies the sections again. For this,
    // `Site::order_rules` appends copies of the refusals.
    host.site.stage = RuleStage::Expression;
    // Sections name folders below the root, so the root is read first, wherever `DocumentRoot` stands.
    for directive in directives.iter().filter(|directive| directive.is("DocumentRoot")) {
        if let Some(folder) = context.expand(directive.argument(0)) {
            host.site.settings.set("root", Value::Text(folder), directive.line);
        }
    }
    let site_patterns = ["/*".to_owned()];
    let mut sections = Vec::new();
    for directive in directives {
        if directive.block.is_some() && !section::is_access(directive) {
            sections.push(*directive);
        } else if !(tls.read(directive, &mut host, context)
            || names(directive, &mut host)
            || alias::translate(directive, &mut host.site, context)
            || redirect::translate(directive, &mut host)
            || traffic::cache(directive, &mut host.site)
            || limit::translate(directive, &site_patterns, &mut host.site)
            || rewrites.read(directive)
            || proxies.read(directive))
        {
            match handler::translate(directive, &HandledFiles::Folder(&site_patterns), &mut host.site) {
                PhpEffect::Other => scope.read(directive),
                PhpEffect::Set(php) => host.site.settings.set("php", php, directive.line),
                PhpEffect::Done => {}
            }
        }
    }
    // Apache applies the directives outside of sections first, then the sections in the order of [`section::order`].
    expires::add(&scope.take_expiry(), &mut host.site);
    let (settings, mut notes, _decides) = scope.finish();
    host.site.settings.merge(settings);
    host.site.notes.append(&mut notes);
    sections.sort_by_key(|section| section::order(section));
    let runners = runners::collect(directives, &sections, global);
    for section in sections {
        let outer = (context, &runners);
        section::translate(section, &mut host.site, &mut proxies, &mut rewrites, outer);
    }
    listeners(block, &tls, &mut host);
    tls.verify_clients(&mut host);
    rewrite::translate(&rewrites, &mut host, &mut proxies);
    proxies.finish(&mut host.site, context);
    php::finish(&mut host.site);
    expires::finish(&mut host.site);
    alias::finish(&mut host.site);
    inherit::finish(&mut host.site);
    host.site.order_rules();
    host.tls = tls.keys();
    host
}

/// Reads `ServerName` and `ServerAlias`. Returns false for other directives.
fn names(directive: &Directive, host: &mut HostDraft) -> bool {
    if !directive.is("ServerName") && !directive.is("ServerAlias") {
        return false;
    }
    let is_main = directive.is("ServerName");
    for (at, argument) in directive.arguments.iter().enumerate() {
        let name = argument.rsplit_once("://").map_or(argument.as_str(), |(_, name)| name);
        let name = name
            .rsplit_once(':')
            .map_or(name, |(name, _)| name)
            .to_ascii_lowercase();
        if name.contains(['?', '$']) || name.trim_start_matches("*.").contains('*') {
            host.needs_name = true;
            host.site
                .skip(directive, "names are exact, or begin with `*.`: list them in `aliases`");
        } else if !host.names.contains(&name) {
            let place = if is_main && at == 0 { 0 } else { host.names.len() };
            host.names.insert(place, name);
        }
    }
    true
}

/// Adds the listeners that a `<VirtualHost>` names. `block`: the section; `None` for a file without hosts, which gets
/// the default listeners.
fn listeners(block: Option<&Directive>, tls: &ApacheTls, host: &mut HostDraft) {
    let Some(block) = block else { return };
    for argument in &block.arguments {
        let (address, port) = match argument.rsplit_once(':') {
            Some((address, port)) if !port.contains(']') => (address, port),
            _ => (argument.as_str(), "80"),
        };
        let port = match port {
            "*" if tls.is_on => Some(443),
            "*" => Some(80),
            port => port.parse::<u16>().ok().filter(|port| *port != 0),
        };
        let Some(port) = port else {
            host.site.skip(block, "the port is not a number");
            continue;
        };
        let is_address = address.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
        let address = match address {
            "*" | "_default_" | "0.0.0.0" | "[::]" => "",
            address if is_address => address,
            _ => {
                host.site.differs(
                    block,
                    "listeners have addresses, not names: the site listens on every address",
                );
                ""
            }
        };
        host.listeners.insert(HostListener {
            address: address.to_owned(),
            port,
            tls: tls.is_on,
        });
    }
}
