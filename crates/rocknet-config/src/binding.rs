//! Bindings of keys to the model: functions that read a value into a field, and that render the field for `explain` and
//! the reference.

mod effective;
mod kind;
mod rendered;
mod scalar;

use std::collections::BTreeMap;

use crate::context::Check;
use crate::file::{Entry, Table};
use crate::model::SourceSpan;

pub use effective::{EffectiveSetting, SettingGroup};
pub use kind::{Kind, Section};
pub use rendered::pattern;
pub(crate) use rendered::{Rendered, host, list, listen, quoted};
pub(crate) use scalar::Scalar;

/// Key in a configuration file: its kind, and its position with its value (`entry`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenKey<'w> {
    pub kind: &'static Kind,
    pub entry: &'w Entry,
}

/// Link between a key and a value of the model.
#[derive(Debug)]
pub(crate) struct Binding<T: 'static> {
    /// Merges the written value over the inherited one; `None` if module `check` reads the key together with other
    /// keys.
    pub read: Option<fn(&mut Check<'_>, &WrittenKey<'_>, &mut T)>,
    /// Renders the effective value.
    pub render: fn(&T, &Kind) -> Rendered,
    /// Adds the keys of the table that is the value of this key; `None` if no such keys are shown.
    pub nested: Option<fn(&T, &mut SettingRows<'_>)>,
}

/// Key with its binding to one part of the model.
#[derive(Debug)]
pub(crate) struct BoundKey<T: 'static> {
    pub name: &'static str,
    pub kind: &'static Kind,
    pub binding: &'static Binding<T>,
}

/// Part of the model that has keys. Module `keys` implements this trait, so that the parsers of tables do not depend on
/// `keys`.
pub(crate) trait HasKeys: Sized + 'static {
    /// Returns the keys of a section that are bound to this part, in the order of the table of keys.
    fn keys(section: Section) -> impl Iterator<Item = BoundKey<Self>>;

    /// Returns the value with every key at its default; `None` if the defaults depend on other tables.
    fn defaults() -> Option<Self>;
}

/// Reads the keys of a configuration table into the value that the keys are bound to. The keys are read in the order of
/// the table of keys.
pub(crate) fn read<T: HasKeys>(check: &mut Check<'_>, section: Section, table: Option<&Table>, into: &mut T) {
    let Some(table) = table else { return };
    for key in T::keys(section) {
        if let Some(entry) = table.entries.get(key.name)
            && let Some(read) = key.binding.read
        {
            read(check, &WrittenKey { kind: key.kind, entry }, into);
        }
    }
}

/// Collects the settings that `rocknet explain` lists.
#[derive(Debug)]
pub(crate) struct SettingRows<'p> {
    /// Positions of the written keys, by path.
    spans: &'p BTreeMap<String, SourceSpan>,
    /// Keys of the enclosing tables, each followed by a dot.
    prefix: String,
    /// Group of the settings that are added next.
    pub group: SettingGroup,
    /// True to include settings that are at their defaults.
    pub show_defaults: bool,
    all: Vec<EffectiveSetting>,
}

impl<'p> SettingRows<'p> {
    /// Creates an empty collection. `spans`: the positions of the written keys, by path, such as `headers.Server`.
    pub fn new(spans: &'p BTreeMap<String, SourceSpan>) -> SettingRows<'p> {
        SettingRows {
            spans,
            prefix: String::new(),
            group: SettingGroup::Site,
            show_defaults: true,
            all: Vec::new(),
        }
    }

    /// Returns the settings in the order in which they were added.
    pub fn into_settings(self) -> Vec<EffectiveSetting> {
        self.all
    }

    /// Adds the keys of a table. `name`: the key whose value is the table.
    pub fn table<T: HasKeys>(&mut self, section: Section, name: &str, value: &T) {
        let outer = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        let defaults = T::defaults();
        for key in T::keys(section) {
            self.key(&key, value, defaults.as_ref());
        }
        self.prefix.truncate(outer);
    }

    /// Adds a key, and the keys of its table. An unset key is not added. `defaults` is the value with every key at its
    /// default; a key at its default is then added only if it was written or `show_defaults` is set. If `defaults` is
    /// `None`, every set key is added.
    pub fn key<T>(&mut self, key: &BoundKey<T>, value: &T, defaults: Option<&T>) {
        let binding = key.binding;
        let shown = (binding.render)(value, key.kind);
        let is_default = defaults.is_some_and(|defaults| (binding.render)(defaults, key.kind) == shown);
        let name = format!("{}{}", self.prefix, key.name);
        match shown {
            // A map of the site or route itself (the prefix is empty) has a row for each entry, because each entry has
            // its own position.
            Rendered::Entries(entries) if self.prefix.is_empty() => {
                for (entry, value) in entries {
                    self.push(format!("{name}.{entry}"), value);
                }
            }
            shown => {
                if let Some(value) = shown.line()
                    && (self.show_defaults || !is_default || self.spans.contains_key(&name))
                {
                    self.push(name, value);
                }
            }
        }
        if let Some(nested) = binding.nested {
            nested(value, self);
        }
    }

    fn push(&mut self, key: String, value: String) {
        self.all.push(EffectiveSetting {
            span: self.spans.get(&key).cloned(),
            key,
            value,
            group: self.group,
        });
    }
}

/// Binds a key to a field that stores the written value unchanged. An invalid value changes nothing, and has already
/// been reported by module `check::keys`.
macro_rules! field {
    ($($field:ident).+) => {
        $crate::binding::Binding {
            read: Some(|_, written, model| {
                if let Some(value) = $crate::binding::Scalar::read(written.kind, &written.entry.node) {
                    model.$($field).+ = value;
                }
            }),
            render: |model, kind| $crate::binding::Scalar::render(&model.$($field).+, kind),
            nested: None,
        }
    };
}

/// Binds a key to a value that a function reads. Without the function, module `check` reads the key together with other
/// keys.
macro_rules! bound {
    (read: $read:expr, render: $render:expr $(, nested: $nested:expr)?) => {
        $crate::binding::Binding { read: Some($read), render: $render, nested: bound!(@nested $($nested)?) }
    };
    (render: $render:expr $(, nested: $nested:expr)?) => {
        $crate::binding::Binding { read: None, render: $render, nested: bound!(@nested $($nested)?) }
    };
    (@nested) => { None };
    (@nested $nested:expr) => { Some($nested) };
}

pub(crate) use {bound, field};
