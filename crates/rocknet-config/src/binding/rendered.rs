//! Values of the model, rendered as TOML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::{HostPattern, Listen, Pattern};

/// Value rendered as TOML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rendered {
    /// The value has no form in TOML, such as a missing root.
    Unset,
    /// One value.
    Value(String),
    /// Entries of a map: names and values.
    Entries(Vec<(String, String)>),
}

impl Rendered {
    /// Renders a string.
    pub fn text(text: &str) -> Rendered {
        Rendered::Value(quoted(text))
    }

    /// Renders `None` as `false`, for a key that is turned off by `false`.
    pub fn or_off(value: Option<Rendered>) -> Rendered {
        value.unwrap_or_else(|| Rendered::Value("false".to_owned()))
    }

    /// Renders a list of strings.
    pub fn texts<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> Rendered {
        Rendered::Value(list(items.into_iter().map(|item| quoted(item.as_ref()))))
    }

    /// Renders a path on disk.
    pub fn path(path: &Path) -> Rendered {
        Rendered::text(&path.to_string_lossy())
    }

    /// Renders a list of paths.
    pub fn paths<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Rendered {
        Rendered::texts(paths.into_iter().map(|path| path.to_string_lossy()))
    }

    /// Renders a list of paths; [`Rendered::Unset`] if the list is empty.
    pub fn some_paths<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Rendered {
        let mut paths = paths.into_iter().peekable();
        match paths.peek() {
            Some(_) => Rendered::paths(paths),
            None => Rendered::Unset,
        }
    }

    /// Renders the entries of a map.
    pub fn entries<K, V>(
        map: impl IntoIterator<Item = (K, V)>,
        name: impl Fn(K) -> String,
        value: impl Fn(V) -> String,
    ) -> Rendered {
        Rendered::Entries(map.into_iter().map(|(key, entry)| (name(key), value(entry))).collect())
    }

    /// Renders the names of a map without its values, which may be secrets.
    pub fn names<V>(map: &BTreeMap<String, V>) -> Rendered {
        Rendered::Entries(map.keys().map(|name| (name.clone(), "…".to_owned())).collect())
    }

    /// Returns the value on one line; `None` if it is unset.
    pub fn line(self) -> Option<String> {
        match self {
            Rendered::Unset => None,
            Rendered::Value(value) => Some(value),
            Rendered::Entries(entries) if entries.is_empty() => Some("{}".to_owned()),
            Rendered::Entries(entries) => {
                let pairs = entries
                    .iter()
                    .map(|(name, value)| format!("{} = {value}", quoted(name)));
                Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
            }
        }
    }
}

/// Renders a list of rendered items.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Renders a string in quotes.
pub(crate) fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// Returns a pattern as it is written in the configuration.
pub fn pattern(pattern: &Pattern) -> String {
    pattern.to_string()
}

/// Renders a listener as it is written in the configuration.
pub(crate) fn listen(listen: &Listen) -> String {
    match listen {
        Listen::Tcp { address: None, port } => port.to_string(),
        Listen::Tcp {
            address: Some(address),
            port,
        } => quoted(&std::net::SocketAddr::new(*address, *port).to_string()),
        Listen::Unix(path) => quoted(&format!("unix:{}", path.display())),
    }
}

/// Renders a pattern of host names.
pub(crate) fn host(name: &HostPattern) -> String {
    match name {
        HostPattern::Exact(name) => quoted(name),
        HostPattern::Wildcard(name) => quoted(&format!("*.{name}")),
    }
}
