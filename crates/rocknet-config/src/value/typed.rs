//! Typed access to the values of tables in which the type of each value has been checked. The result is `None` if the
//! key is missing, or if its value is invalid; an invalid value has already been reported.

use std::time::Duration;

use crate::choice::Choice;
use crate::file::{Node, Table, Text, Value};
use crate::source::Span;
use crate::units;

/// Returns a whole number; `None` if it does not fit the type.
pub(crate) fn integer<T: TryFrom<i64>>(table: Option<&Table>, key: &str) -> Option<T> {
    match table?.node(key)?.value {
        Value::Integer(number) => T::try_from(number).ok(),
        _ => None,
    }
}

pub(crate) fn boolean(table: Option<&Table>, key: &str) -> Option<bool> {
    match table?.node(key)?.value {
        Value::Boolean(value) => Some(value),
        _ => None,
    }
}

pub(crate) fn text<'t>(table: Option<&'t Table>, key: &str) -> Option<&'t str> {
    table?.node(key)?.as_text()
}

pub(crate) fn choice<T: Choice>(table: Option<&Table>, key: &str) -> Option<T> {
    T::of(text(table, key)?)
}

pub(crate) fn duration(table: Option<&Table>, key: &str) -> Option<Duration> {
    units::duration(text(table, key)?).ok()
}

/// Returns a number of bytes, written as an integer or with a unit.
pub(crate) fn size(table: Option<&Table>, key: &str) -> Option<u64> {
    match &table?.node(key)?.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => units::size(&text.value).ok(),
        _ => None,
    }
}

/// Returns a number of bytes per second.
pub(crate) fn rate(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => units::rate(&text.value).ok(),
        _ => None,
    }
}

/// Returns the elements of a list, or a single value as one element. A broken value has no elements.
pub(crate) fn elements(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        Value::Broken => &[],
        _ => std::slice::from_ref(node),
    }
}

/// Returns the strings of a value that is a string or a list of strings.
pub(crate) fn texts(node: &Node) -> impl Iterator<Item = (&Text, Span)> {
    elements(node)
        .iter()
        .filter_map(|item| Some((item.written()?, item.span)))
}

/// Returns a string as it was written, before variables were expanded; empty for other values. Messages quote this
/// form, because the expanded value may be a secret.
pub(crate) fn as_written(node: &Node) -> &str {
    match &node.value {
        Value::Text(text) => text.as_written(),
        _ => "",
    }
}
