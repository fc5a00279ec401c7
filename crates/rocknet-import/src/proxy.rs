//! Settings of a proxy (servers, header fields, health check and other keys), and their TOML form.

use std::collections::BTreeMap;

use crate::value::Value;

/// Server of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyServer {
    pub url: String,
    pub weight: u64,
    /// True if the server gets requests only when no active server is available.
    pub backup: bool,
    /// True if the server gets no new clients.
    pub drain: bool,
}

impl ProxyServer {
    pub fn new(url: impl Into<String>) -> ProxyServer {
        ProxyServer {
            url: url.into(),
            weight: 1,
            backup: false,
            drain: false,
        }
    }

    /// Returns the TOML form of the server: its URL, or a table if it has a weight or role.
    fn value(&self) -> Value {
        if self.weight == 1 && !self.backup && !self.drain {
            return Value::text(&self.url);
        }
        let mut entries = vec![("url".to_owned(), Value::text(&self.url))];
        if self.weight != 1 {
            entries.push(("weight".to_owned(), Value::Number(self.weight)));
        }
        for (key, flag) in [("backup", self.backup), ("drain", self.drain)] {
            if flag {
                entries.push((key.to_owned(), Value::Flag(true)));
            }
        }
        Value::Table(entries)
    }
}

/// Settings of a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProxySettings {
    pub servers: Vec<ProxyServer>,
    /// Keys other than `to`, `headers` and `health`, in the order in which they are written.
    pub keys: Vec<(&'static str, Value)>,
    /// Header fields of forwarded requests, by name.
    pub headers: BTreeMap<String, String>,
    /// Keys of the health check.
    pub health: Vec<(&'static str, Value)>,
}

impl ProxySettings {
    /// Sets a key; an earlier value is replaced.
    pub fn set(&mut self, key: &'static str, value: Value) {
        self.keys.retain(|(known, _)| *known != key);
        self.keys.push((key, value));
    }

    /// Adds an entry to the map of a key. A value that is not a map stays.
    pub fn add_pair(&mut self, key: &'static str, from: &str, to: &str) {
        let pair = (from.to_owned(), Value::text(to));
        match self.keys.iter_mut().find(|(known, _)| *known == key) {
            Some((_, Value::Table(pairs))) => {
                pairs.retain(|(known, _)| known != from);
                pairs.push(pair);
            }
            Some(_) => {}
            None => self.keys.push((key, Value::Table(vec![pair]))),
        }
    }

    /// Returns the first server that gets requests while all servers are available; else the first backup, or the first
    /// server if all are drained.
    pub fn first_active(&self) -> Option<&ProxyServer> {
        let mut in_use = self.servers.iter().filter(|server| !server.drain);
        let active = in_use.clone().find(|server| !server.backup);
        active.or(in_use.next()).or(self.servers.first())
    }

    /// Returns true if no server gets new clients.
    pub fn is_drained(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|server| server.drain)
    }

    /// Returns the value of the key `proxy`.
    pub fn value(&self) -> Value {
        let servers = Value::one_or_list(self.servers.iter().map(ProxyServer::value).collect());
        let is_short = self.keys.is_empty() && self.headers.is_empty() && self.health.is_empty();
        // The short form is `proxy = "URL"` or a list of URLs. A server with a weight or role is a table, which the
        // short form does not accept.
        if is_short
            && self
                .servers
                .iter()
                .all(|server| matches!(server.value(), Value::Text(_)))
        {
            return servers;
        }
        let mut entries = vec![("to".to_owned(), servers)];
        entries.extend(self.keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        if !self.headers.is_empty() {
            let fields = self.headers.iter();
            let fields = fields.map(|(name, value)| (name.clone(), Value::text(value))).collect();
            entries.push(("headers".to_owned(), Value::Table(fields)));
        }
        match &self.health[..] {
            [] => {}
            // A path alone is the short form of `health`.
            [("path", path)] => entries.push(("health".to_owned(), path.clone())),
            health => {
                let keys = health.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
                entries.push(("health".to_owned(), Value::Table(keys.collect())));
            }
        }
        Value::Table(entries)
    }
}

/// Returns true for an `http` or `https` URL of a constant host, with or without a path.
pub(crate) fn is_plain_url(url: &str) -> bool {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| url.strip_prefix(scheme));
    let host = rest.map(|rest| rest.split('/').next().unwrap_or(rest));
    host.is_some_and(|host| !host.is_empty()) && !url.contains(['$', '@', '?', '#', '\\', '%', '{'])
}
