//! Definitions of an Apache configuration that other directives refer to: variables (`Define`) and balancers.

use std::collections::HashMap;

use crate::directive::Directive;
use crate::document::Notes;
use crate::proxy::{ProxyServer, ProxySettings};
use crate::value::Value;

/// Definitions of a configuration.
#[derive(Default)]
pub(super) struct ServerContext {
    variables: HashMap<String, String>,
    balancers: HashMap<String, ProxySettings>,
}

impl ServerContext {
    pub fn collect<'d>(all: impl IntoIterator<Item = &'d Directive>) -> ServerContext {
        let mut context = ServerContext::default();
        // Debian's scripts set this variable.
        context
            .variables
            .insert("APACHE_LOG_DIR".to_owned(), "/var/log/apache2".to_owned());
        for directive in all {
            if directive.is("Define") && directive.arguments.len() == 2 {
                let (name, value) = (directive.argument(0).to_owned(), directive.argument(1).to_owned());
                context.variables.insert(name, value);
            }
            if directive.is("Proxy") {
                context.add_balancer(directive);
            }
            if directive.is("VirtualHost") {
                let proxies = directive.children().iter().filter(|inner| inner.is("Proxy"));
                proxies.for_each(|proxy| context.add_balancer(proxy));
            }
        }
        context
    }

    /// Returns true for a directive outside of hosts that needs no note. It has been read into the definitions, or it
    /// is a `Listen`, whose port the hosts repeat.
    pub fn has_read(&self, directive: &Directive) -> bool {
        ["Define", "Listen", "Proxy"].iter().any(|name| directive.is(name))
    }

    fn add_balancer(&mut self, section: &Directive) {
        let Some(name) = section.argument(0).strip_prefix("balancer://") else {
            return;
        };
        let mut group = ProxySettings::default();
        for directive in section.children().iter().filter(|inner| inner.is("BalancerMember")) {
            let mut server = ProxyServer::new(server_url(directive.argument(0)));
            for parameter in &directive.arguments[1.min(directive.arguments.len())..] {
                match parameter.split_once('=') {
                    Some(("loadfactor", weight)) => server.weight = weight.parse().unwrap_or(1),
                    // `H` marks a hot standby, and `D` a disabled member.
                    Some(("status", status)) if status.contains(['H', 'h']) => server.backup = true,
                    Some(("status", status)) if status.contains(['D', 'd']) => server.drain = true,
                    _ => {}
                }
            }
            group.servers.push(server);
        }
        for directive in section.children().iter().filter(|inner| inner.is("ProxySet")) {
            if directive
                .arguments
                .iter()
                .any(|argument| argument == "lbmethod=bybusyness")
            {
                group.set("balance", Value::text("least_conn"));
            }
            let sticky = directive
                .arguments
                .iter()
                .find_map(|argument| argument.strip_prefix("stickysession="));
            if sticky.is_some() {
                group.set("sticky", Value::Flag(true));
            }
        }
        // The default of Apache, `byrequests`, corresponds to `round_robin`; RockNet has another default.
        if group.servers.len() > 1 && !group.keys.iter().any(|(key, _)| *key == "balance") {
            group.set("balance", Value::text("round_robin"));
        }
        self.balancers.insert(name.trim_end_matches('/').to_owned(), group);
    }

    /// Notes the settings of a section `<Proxy balancer://…>` that are not translated, or that differ.
    pub fn note_balancer(&self, section: &Directive, notes: &mut dyn Notes) {
        for directive in section.children() {
            match directive.name.to_ascii_lowercase().as_str() {
                "balancermember" => {
                    for parameter in directive.arguments.iter().skip(1) {
                        let name = parameter.split('=').next().unwrap_or_default();
                        if !matches!(name, "loadfactor" | "status") {
                            notes.skip(
                                directive,
                                &format!("`{parameter}` has no direct counterpart: docs/proxy.md"),
                            );
                        }
                    }
                }
                "proxyset" => {
                    for parameter in &directive.arguments {
                        match parameter.split_once('=') {
                            Some(("lbmethod", "byrequests" | "bybusyness")) => {}
                            Some(("stickysession", _)) => {
                                notes.differs(directive, "`sticky` sets a cookie of its own, `rocknet_server`");
                            }
                            _ => notes.skip(directive, &format!("`{parameter}` has no counterpart")),
                        }
                    }
                }
                "require" | "allow" | "order" if is_open(directive) => {}
                _ => notes.skip_restriction(directive, "write `allow`, `deny` or `auth` in the route of the proxy"),
            }
        }
    }

    /// Returns the balancer of a URL such as `balancer://name/`, with the path after its name; `None` for other URLs
    /// and unknown balancers.
    pub fn balancer<'u>(&self, url: &'u str) -> Option<(ProxySettings, &'u str)> {
        let rest = url.strip_prefix("balancer://")?;
        let end = rest.find('/').unwrap_or(rest.len());
        let group = self.balancers.get(&rest[..end])?;
        Some((group.clone(), &rest[end..]))
    }

    /// Replaces `${NAME}`; `None` if a variable is not defined, or if the text becomes longer than [`MAX_EXPANDED`].
    pub fn expand(&self, text: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, next) = after.split_once('}')?;
            out.push_str(before);
            out.push_str(self.variables.get(name)?);
            // A hostile file could define long values and use them often.
            if out.len() > MAX_EXPANDED {
                return None;
            }
            rest = next;
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Returns true for access control that permits every client, and for `Order`, which only ranks `Allow` and
/// `Deny`.
fn is_open(directive: &Directive) -> bool {
    directive.is("Order") || directive.words() == ["all", "granted"] || directive.words() == ["from", "all"]
}

/// Maximum length of an argument after expansion, in bytes.
const MAX_EXPANDED: usize = 16 * 1024;

/// Returns the URL of a server in RockNet's form: without the path, and WebSocket as HTTP.
pub(super) fn server_url(url: &str) -> String {
    let url = url.replacen("ws://", "http://", 1).replacen("wss://", "https://", 1);
    match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or(rest)),
        None => url,
    }
}
