//! Bindings of keys to the model: how a key is read into a value, and how `explain` and the reference write that value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Key, Kind, Word};
use crate::check::Check;
use crate::choice::Choice;
use crate::explain::Rows;
use crate::file::{Entry, Node, Table, Value};
use crate::model::{
    AccessLog, Application, Cache, Cgi, Duty, Events, Health, Host, Limits, Log, Mirror, Protocol, Proxy, Rotate,
    Server, Settings, Site, SiteTls, Spool, Tls, Upstream, Weighted,
};
use crate::units;

/// A key as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'w> {
    pub key: &'static Key,
    pub entry: &'w Entry,
}

/// The effect of a key on a value of the model.
#[derive(Debug)]
pub(crate) struct Binding<T: 'static> {
    /// Lays the written value over the inherited one. `None`: the key is read together with others in `check`.
    pub read: Option<fn(&mut Check<'_>, &Written<'_>, &mut T)>,
    /// Writes the value as it applies.
    pub show: fn(&T, &Kind) -> Shown,
    /// Writes the keys of the table that this key takes.
    pub inside: Option<fn(&T, &mut Rows<'_>)>,
}

/// A value as it would be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The value cannot be written, as with a missing root.
    Nothing,
    Value(String),
    /// The entries of a map.
    Entries(Vec<(String, String)>),
}

/// A part of the model that keys are bound to.
pub(crate) trait Model: Sized + 'static {
    fn binding(key: &Key) -> Option<&Binding<Self>>;

    /// Returns the value without any key written, which holds the defaults. `None`: they depend on other tables.
    fn bare() -> Option<Self>;
}

macro_rules! models {
    ($($name:ident: $bare:expr,)+) => {
        /// A binding and the part of the model that it belongs to.
        #[derive(Debug)]
        pub(crate) enum Target {
            $($name(Binding<$name>),)+
        }

        impl Target {
            /// Returns the default of the bound value as it would be written.
            pub fn default(&self, kind: &Kind) -> Option<String> {
                match self {
                    $(Target::$name(binding) => (binding.show)(&$name::bare()?, kind).line(),)+
                }
            }
        }

        $(impl Model for $name {
            fn binding(key: &Key) -> Option<&Binding<$name>> {
                key.targets.iter().find_map(|target| match target {
                    Target::$name(binding) => Some(binding),
                    _ => None,
                })
            }

            fn bare() -> Option<$name> {
                $bare
            }
        })+
    };
}

models! {
    Server: Some(Server::default()),
    Events: Some(Events::default()),
    Spool: Some(Spool::default()),
    Limits: Some(Limits::default()),
    Log: Some(Log::default()),
    AccessLog: Some(AccessLog::default()),
    Rotate: Some(Rotate::default()),
    Cache: Some(Cache::default()),
    Tls: Some(Tls::default()),
    Site: None,
    SiteTls: None,
    Settings: Some(Settings::default()),
    Proxy: Some(Proxy::to(Vec::new())),
    Weighted: Some(Weighted { upstream: nowhere(), weight: Weighted::WEIGHT, duty: Duty::Share }),
    Health: Some(Health::of(String::new())),
    Mirror: Some(Mirror::to(nowhere())),
    Application: Some(Application::at(Protocol::FastCgi, Vec::new())),
    Cgi: Some(Cgi::at(String::new())),
}

fn nowhere() -> Upstream {
    Upstream::at(Host::Name(String::new(), 0))
}

/// Binds a key to a field that has the written value.
macro_rules! field {
    ($($field:ident).+) => {
        $crate::keys::binding::Binding {
            read: Some(|_, written, it| {
                if let Some(value) = $crate::keys::binding::Field::read(&written.key.kind, &written.entry.node) {
                    it.$($field).+ = value;
                }
            }),
            show: |it, kind| $crate::keys::binding::Field::show(&it.$($field).+, kind),
            inside: None,
        }
    };
}

/// Binds a key to a value that a function reads; without one, the key is read together with others.
macro_rules! bound {
    (read $read:expr, show $show:expr $(, inside $inside:expr)?) => {
        $crate::keys::binding::Binding { read: Some($read), show: $show, inside: bound!(@inside $($inside)?) }
    };
    (show $show:expr $(, inside $inside:expr)?) => {
        $crate::keys::binding::Binding { read: None, show: $show, inside: bound!(@inside $($inside)?) }
    };
    (@inside) => { None };
    (@inside $inside:expr) => { Some($inside) };
}

pub(super) use {bound, field};

/// A type of the model that is written as one value.
pub(crate) trait Field: Sized {
    /// Reads a value whose kind was checked; `None` where it did not fit, which has been reported.
    fn read(kind: &Kind, node: &Node) -> Option<Self>;

    fn show(&self, kind: &Kind) -> Shown;
}

impl Field for bool {
    fn read(_: &Kind, node: &Node) -> Option<bool> {
        match node.value {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }

    fn show(&self, _: &Kind) -> Shown {
        Shown::Value(self.to_string())
    }
}

impl Field for Duration {
    fn read(_: &Kind, node: &Node) -> Option<Duration> {
        units::duration(node.as_text()?).ok()
    }

    fn show(&self, _: &Kind) -> Shown {
        Shown::text(&units::write_duration(*self))
    }
}

impl<T: Choice> Field for T {
    fn read(_: &Kind, node: &Node) -> Option<T> {
        T::of(node.as_text()?)
    }

    fn show(&self, _: &Kind) -> Shown {
        self.written().map_or(Shown::Nothing, Shown::text)
    }
}

macro_rules! numbers {
    ($($number:ty)+) => {
        $(impl Field for $number {
            fn read(kind: &Kind, node: &Node) -> Option<$number> {
                <$number>::try_from(number(kind, node)?).ok()
            }

            fn show(&self, kind: &Kind) -> Shown {
                show_number(kind, *self as u64)
            }
        })+
    };
}

// No wider than `u64`, and of `Kind::Integer` no key takes a number below zero.
numbers!(u16 u32 u64 usize);

/// `None` is written as the one word of a choice, such as `"auto"` or `"off"`, or cannot be written.
impl<T: Field> Field for Option<T> {
    fn read(kind: &Kind, node: &Node) -> Option<Option<T>> {
        match node.as_text() {
            Some(text) if words(kind).iter().any(|word| word.text == text) => Some(None),
            _ => T::read(kind, node).map(Some),
        }
    }

    fn show(&self, kind: &Kind) -> Shown {
        match self {
            Some(value) => value.show(kind),
            None => words(kind)
                .first()
                .map_or(Shown::Nothing, |word| Shown::text(word.text)),
        }
    }
}

impl Field for String {
    fn read(_: &Kind, node: &Node) -> Option<String> {
        node.as_text().map(str::to_owned)
    }

    fn show(&self, _: &Kind) -> Shown {
        Shown::text(self)
    }
}

/// Reads a number in the unit of its kind.
fn number(kind: &Kind, node: &Node) -> Option<u64> {
    match (kind, &node.value) {
        (Kind::Integer { .. } | Kind::Size { .. } | Kind::Rate { .. }, Value::Integer(number)) => {
            u64::try_from(*number).ok()
        }
        (Kind::Size { .. }, Value::Text(text)) => units::size(&text.value).ok(),
        (Kind::Rate { .. }, Value::Text(text)) => units::rate(&text.value).ok(),
        (Kind::Either(kinds), _) => kinds.iter().find_map(|kind| number(kind, node)),
        _ => None,
    }
}

fn show_number(kind: &Kind, number: u64) -> Shown {
    match kind {
        Kind::Size { .. } => Shown::text(&units::show_size(number)),
        Kind::Rate { .. } => Shown::text(&format!("{}/s", units::show_size(number))),
        Kind::Either(kinds) => match kinds
            .iter()
            .find(|kind| matches!(kind, Kind::Size { .. } | Kind::Rate { .. }))
        {
            Some(kind) => show_number(kind, number),
            None => Shown::Value(number.to_string()),
        },
        _ => Shown::Value(number.to_string()),
    }
}

fn of_choice(kind: &Kind) -> Option<&'static [Word]> {
    match kind {
        Kind::Choice(words) => Some(words),
        _ => None,
    }
}

/// Returns the words that a kind takes beside other values.
fn words(kind: &Kind) -> &'static [Word] {
    match kind {
        Kind::Either(kinds) => kinds.iter().find_map(of_choice).unwrap_or_default(),
        _ => &[],
    }
}

impl Shown {
    /// A string.
    pub fn text(text: &str) -> Shown {
        Shown::Value(quoted(text))
    }

    /// The value of a key that `false` turns off.
    pub fn or_off(value: Option<Shown>) -> Shown {
        value.unwrap_or_else(|| Shown::Value("false".to_owned()))
    }

    /// A list of strings.
    pub fn texts<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> Shown {
        Shown::Value(list(items.into_iter().map(|item| quoted(item.as_ref()))))
    }

    /// A path on disk.
    pub fn path(path: &Path) -> Shown {
        Shown::text(&path.to_string_lossy())
    }

    /// A list of paths.
    pub fn paths<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Shown {
        Shown::texts(paths.into_iter().map(|path| path.to_string_lossy()))
    }

    /// A list of paths, which cannot be written without one.
    pub fn some_paths<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Shown {
        let mut paths = paths.into_iter().peekable();
        match paths.peek() {
            Some(_) => Shown::paths(paths),
            None => Shown::Nothing,
        }
    }

    /// The entries of a map.
    pub fn entries<K, V>(
        map: impl IntoIterator<Item = (K, V)>,
        name: impl Fn(K) -> String,
        value: impl Fn(V) -> String,
    ) -> Shown {
        Shown::Entries(map.into_iter().map(|(key, entry)| (name(key), value(entry))).collect())
    }

    /// The names of a map whose values may be secrets.
    pub fn names(map: &BTreeMap<String, String>) -> Shown {
        Shown::Entries(map.keys().map(|name| (name.clone(), "…".to_owned())).collect())
    }

    /// Returns the value on one line, `None` if it cannot be written.
    pub fn line(self) -> Option<String> {
        match self {
            Shown::Nothing => None,
            Shown::Value(value) => Some(value),
            Shown::Entries(entries) if entries.is_empty() => Some("{}".to_owned()),
            Shown::Entries(entries) => {
                let pairs = entries
                    .iter()
                    .map(|(name, value)| format!("{} = {value}", quoted(name)));
                Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")))
            }
        }
    }
}

/// A list as it would be written.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// A string as it would be written.
pub(crate) fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// Reads the written keys of a table into the value that they are bound to, in the order of the table of keys.
pub(crate) fn read<T: Model>(check: &mut Check<'_>, scope: super::Scope, table: Option<&Table>, into: &mut T) {
    let Some(table) = table else { return };
    for key in super::within(scope) {
        if let Some(entry) = table.entries.get(key.name)
            && let Some(read) = T::binding(key).and_then(|binding| binding.read)
        {
            read(check, &Written { key, entry }, into);
        }
    }
}
