//! Bindings of keys to the model: how a key is read into a value, and how `explain` and the reference write that value.

mod applied;
mod kind;
mod scalar;
mod shown;

use std::collections::BTreeMap;

use crate::context::Check;
use crate::file::{Entry, Table};
use crate::model::SourceSpan;

pub use applied::{Applied, Group};
pub use kind::{Kind, Section};
pub(crate) use scalar::Field;
pub use shown::pattern;
pub(crate) use shown::{Shown, host, list, listen, quoted};

/// A key as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'w> {
    pub kind: &'static Kind,
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

/// A key with its binding to one part of the model.
#[derive(Debug)]
pub(crate) struct Bound<T: 'static> {
    pub name: &'static str,
    pub kind: &'static Kind,
    pub binding: &'static Binding<T>,
}

/// A part of the model with keys. The table of keys implements it, so that a parser of a table does not import the entries.
pub(crate) trait Keyed: Sized + 'static {
    /// Returns the keys of a table that are bound to this part, in the order of the table of keys.
    fn keys(section: Section) -> impl Iterator<Item = Bound<Self>>;

    /// Returns the value without any key written, which holds the defaults. `None`: they depend on other tables.
    fn bare() -> Option<Self>;
}

/// Reads the written keys of a table into the value that they are bound to, in the order of the table of keys.
pub(crate) fn read<T: Keyed>(check: &mut Check<'_>, section: Section, table: Option<&Table>, into: &mut T) {
    let Some(table) = table else { return };
    for key in T::keys(section) {
        if let Some(entry) = table.entries.get(key.name)
            && let Some(read) = key.binding.read
        {
            read(check, &Written { kind: key.kind, entry }, into);
        }
    }
}

/// The settings of an explanation while they are collected.
#[derive(Debug)]
pub(crate) struct Rows<'p> {
    spans: &'p BTreeMap<String, SourceSpan>,
    /// The tables around the key, each with a dot.
    prefix: String,
    pub group: Group,
    /// Shows defaults too.
    pub in_use: bool,
    all: Vec<Applied>,
}

impl<'p> Rows<'p> {
    /// Returns rows without a setting, for values that were written at these positions.
    pub fn new(spans: &'p BTreeMap<String, SourceSpan>) -> Rows<'p> {
        Rows {
            spans,
            prefix: String::new(),
            group: Group::Site,
            in_use: true,
            all: Vec::new(),
        }
    }

    /// Returns the settings in the order in which they were added.
    pub fn into_all(self) -> Vec<Applied> {
        self.all
    }

    /// Adds the keys of a table.
    pub fn of<T: Keyed>(&mut self, section: Section, name: &str, value: &T) {
        let outer = self.prefix.len();
        self.prefix.push_str(name);
        self.prefix.push('.');
        let bare = T::bare();
        for key in T::keys(section) {
            self.key(&key, value, bare.as_ref());
        }
        self.prefix.truncate(outer);
    }

    /// Adds a key, and the keys of its table. `bare`: the value that holds the defaults.
    pub fn key<T>(&mut self, key: &Bound<T>, value: &T, bare: Option<&T>) {
        let binding = key.binding;
        let shown = (binding.show)(value, key.kind);
        let is_default = bare.is_some_and(|bare| (binding.show)(bare, key.kind) == shown);
        let name = format!("{}{}", self.prefix, key.name);
        match shown {
            Shown::Entries(entries) if self.prefix.is_empty() => {
                for (entry, value) in entries {
                    self.push(format!("{name}.{entry}"), value);
                }
            }
            shown => {
                if let Some(value) = shown.line()
                    && (self.in_use || !is_default || self.spans.contains_key(&name))
                {
                    self.push(name, value);
                }
            }
        }
        if let Some(inside) = binding.inside {
            inside(value, self);
        }
    }

    fn push(&mut self, key: String, value: String) {
        self.all.push(Applied {
            span: self.spans.get(&key).cloned(),
            key,
            value,
            group: self.group,
        });
    }
}

/// Binds a key to a field that has the written value.
macro_rules! field {
    ($($field:ident).+) => {
        $crate::binding::Binding {
            read: Some(|_, written, it| {
                if let Some(value) = $crate::binding::Field::read(written.kind, &written.entry.node) {
                    it.$($field).+ = value;
                }
            }),
            show: |it, kind| $crate::binding::Field::show(&it.$($field).+, kind),
            inside: None,
        }
    };
}

/// Binds a key to a value that a function reads; without one, the key is read together with others.
macro_rules! bound {
    (read $read:expr, show $show:expr $(, inside $inside:expr)?) => {
        $crate::binding::Binding { read: Some($read), show: $show, inside: bound!(@inside $($inside)?) }
    };
    (show $show:expr $(, inside $inside:expr)?) => {
        $crate::binding::Binding { read: None, show: $show, inside: bound!(@inside $($inside)?) }
    };
    (@inside) => { None };
    (@inside $inside:expr) => { Some($inside) };
}

pub(crate) use {bound, field};
