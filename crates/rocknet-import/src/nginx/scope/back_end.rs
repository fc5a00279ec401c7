//! Translates the directives that name a back end, such as `proxy_pass`, and its parameters.

use super::super::upstream::{self, Upstreams};
use super::Scope;
use crate::directive::Directive;
use crate::document::Notes;
use crate::value::Value;

impl<'a> Scope<'a> {
    /// Translates a parameter of an application. Variables of nginx are the usual values, which RockNet sets itself.
    pub(super) fn param(&mut self, directive: &Directive, name: &str, value: &str) {
        const USUAL: [&str; 9] = [
            "HTTPS",
            "HTTP_PROXY",
            "REDIRECT_STATUS",
            "GATEWAY_INTERFACE",
            "SERVER_SOFTWARE",
            "REQUEST_SCHEME",
            "SCRIPT_NAME",
            "PATH_INFO",
            "modHeadersAvailable",
        ];
        if value.contains('$') || USUAL.contains(&name) {
            let message = "RockNet sets the usual variables itself: docs/php.md";
            return self.notes.unneeded(directive, message);
        }
        self.params.retain(|(known, _)| known != name);
        self.params.push((name.to_owned(), Value::text(value)));
    }

    /// Translates a directive that names a back end, such as `proxy_pass`.
    pub(super) fn pass(&mut self, directive: &'a Directive, upstreams: &Upstreams) {
        let line = directive.line;
        self.pass = Some(directive);
        let address = directive.argument(0);
        let message = "the address has variables, so `deny = \"all\"` denies every client here, because the files \
             could be requested otherwise: write a constant address";
        match directive.name.as_str() {
            "proxy_pass" | "grpc_pass" => {
                let url = address.replace("grpc://", "http://").replace("grpcs://", "https://");
                let Some(mut target) = upstream::target(&url, upstreams) else {
                    self.settings.close(line);
                    return self.notes.skip(directive, message);
                };
                let own: Vec<_> = self.proxy.clone();
                upstream::settings(&own, &mut target, directive, &mut self.notes);
                if directive.is("grpc_pass") {
                    for server in &mut target.proxy.servers {
                        server.url = server.url.replace("http://", "h2c://");
                    }
                    target.proxy.set("http2", Value::Flag(true));
                }
                self.pass_path = target.path;
                self.settings.set("proxy", target.proxy.value(), line);
            }
            name => {
                let key = match name {
                    "fastcgi_pass" => "fastcgi",
                    "uwsgi_pass" => "uwsgi",
                    _ => "scgi",
                };
                if address.contains('$') {
                    self.settings.close(line);
                    return self.notes.skip(directive, message);
                }
                let addresses: Vec<String> = match upstreams.get(address) {
                    Some(group) => group.servers.iter().map(|server| server.url.clone()).collect(),
                    None => vec![address.to_owned()],
                };
                // `unix:/…` contains a colon, too. Any other address without a colon gets the default port of
                // php-fpm.
                let addresses = addresses.into_iter().map(|address| match address.contains(':') {
                    true => address,
                    false => format!("{address}:9000"),
                });
                let to = Value::texts(addresses);
                let params = std::mem::take(&mut self.params);
                let value = match params.is_empty() {
                    true => to,
                    false => Value::Table(vec![("to".to_owned(), to), ("params".to_owned(), Value::Table(params))]),
                };
                self.settings.set(key, value, line);
            }
        }
    }
}
