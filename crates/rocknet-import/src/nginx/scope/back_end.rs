//! Translates the directives that name a back end, such as `proxy_pass`, and its parameters.

use super::super::params;
use super::super::upstream::{self, ALL_DOWN, Upstreams, with_port};
use super::{ConfigLevel, NamedAccess, Scope};
use crate::directive::Directive;
use crate::document::Notes;
use crate::note::Note;
use crate::proxy::ProxySettings;
use crate::value::Value;

impl<'a> Scope<'a> {
    /// Reads a parameter of an application, such as `fastcgi_param`.
    pub(super) fn param(&mut self, directive: &'a Directive) {
        if params::constant(directive).is_none() {
            let message = "RockNet sets the usual variables itself: docs/php.md";
            self.notes.unneeded(directive, message);
        }
        // A parameter that is not needed counts too, because it ends the inheritance of outer parameters.
        self.params.push(directive);
    }

    /// Returns the parameters of applications that levels inside this one inherit.
    pub fn inherited_params(&self) -> Vec<&'a Directive> {
        params::effective(&self.params, &self.outer_params)
    }

    /// Calls `read`, which reads the directives of a named location, such as `@app`, into this level, whose `try_files`
    /// names it. During the call, `params` are those of the named location, and `outer_params` those of the server,
    /// which it inherits.
    pub fn read_named(&mut self, location: &'a Directive, read: impl FnOnce(&mut Scope<'a>)) {
        self.named = Some(NamedAccess {
            location,
            directives: Vec::new(),
            exit: None,
        });
        let (own, outer) = (std::mem::take(&mut self.params), self.outer_params.clone());
        // In a location, `outer_params` are those of the server already. In a server, they are those of `http`.
        if self.level == ConfigLevel::Server {
            self.outer_params = params::effective(&own, &outer);
        }
        read(self);
        (self.params, self.outer_params) = (own, outer);
    }

    /// Translates a directive that names a back end, such as `proxy_pass`.
    pub(super) fn pass(&mut self, directive: &'a Directive, upstreams: &Upstreams) {
        let line = directive.line;
        self.pass = Some(directive);
        let address = directive.argument(0);
        let form = match address.contains('$') {
            true => "the address has variables",
            false => "the address is not a URL with `http` or `https`",
        };
        let message = format!(
            "{form}; without a back end, clients could request files, so `deny = \"all\"` denies every client here: \
             write a constant address"
        );
        match directive.name.as_str() {
            "proxy_pass" | "grpc_pass" => {
                let url = match directive.is("grpc_pass") {
                    // Without a scheme, nginx uses gRPC without TLS.
                    true if !address.contains("://") => format!("http://{address}"),
                    true => address.replace("grpc://", "http://").replace("grpcs://", "https://"),
                    false => address.to_owned(),
                };
                let Some(mut target) = upstream::target(&url, upstreams) else {
                    self.settings.close(line);
                    return self.notes.skip(directive, &message);
                };
                let directives = self.proxy.clone();
                upstream::settings(&directives, &mut target, directive, &mut self.notes);
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
                    return self.notes.skip(directive, &message);
                }
                // A `server` in an `upstream` block has port 80 by default. Any other address needs a port in nginx, so
                // a name without one is that of a block in a file that was not read. It becomes a host with port 9000.
                let (addresses, default_port) = match upstreams.get(address) {
                    Some(group) => (addresses(group, directive, &mut self.notes), 80),
                    None => (vec![address.to_owned()], 9000),
                };
                let to = Value::texts(addresses.iter().map(|address| with_port(address, default_port)));
                let mut entries = Vec::new();
                let params = params::entries(&self.inherited_params(), name);
                if !params.is_empty() {
                    entries.push(("params".to_owned(), Value::Table(params)));
                }
                if let Some(group) = upstreams.get(address) {
                    entries.extend(group_keys(group, directive, &mut self.notes));
                }
                let value = match entries.is_empty() {
                    true => to,
                    false => Value::Table([vec![("to".to_owned(), to)], entries].concat()),
                };
                self.settings.set(key, value, line);
            }
        }
    }
}

/// Returns the addresses of an application for the servers of a group. Notes the parameters without a counterpart.
fn addresses(group: &ProxySettings, directive: &Directive, notes: &mut Vec<Note>) -> Vec<String> {
    let active: Vec<_> = group.servers.iter().filter(|server| !server.drain).collect();
    let (backups, main): (Vec<_>, Vec<_>) = active.iter().copied().partition(|server| server.backup);
    if !backups.is_empty() && !main.is_empty() {
        let message = "applications have no backup servers, so those of the group are left out";
        notes.differs(directive, message);
    }
    // If every server is `down`, nginx responds with 502. RockNet would send files without an address, so it gets the
    // addresses of these servers.
    let used = [main, backups, group.servers.iter().collect()];
    let used = used.into_iter().find(|servers| !servers.is_empty()).unwrap_or_default();
    if used.iter().all(|server| server.drain) && !used.is_empty() {
        notes.differs(directive, ALL_DOWN);
    }
    if used
        .iter()
        .any(|server| Some(server.weight) != used.first().map(|first| first.weight))
    {
        notes.differs(
            directive,
            "applications have no weights: the servers of the group share the requests equally",
        );
    }
    used.into_iter().map(|server| server.url.clone()).collect()
}

/// Returns the keys of a group that an application also has. Notes the others.
fn group_keys(group: &ProxySettings, directive: &Directive, notes: &mut Vec<Note>) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (key, value) in &group.keys {
        match (*key, value) {
            // RockNet's default for applications distributes requests evenly, too.
            ("balance", Value::Text(policy)) if policy == "round_robin" || policy == "random_two" => {}
            ("balance", Value::Text(policy)) if policy != "least_conn" => {
                let message = "applications have no such `balance`, so requests of a client may go to several servers";
                notes.differs(directive, message);
            }
            ("balance" | "fails" | "fail_time", value) => found.push(((*key).to_owned(), value.clone())),
            ("connections", _) => notes.skip(directive, "applications have no limit of connections"),
            _ => {}
        }
    }
    found
}
