//! Values read from tables once their kinds are checked: what did not fit is absent here, and was told before.

use std::time::Duration;

use crate::choice::Choice;
use crate::file::{Node, Table, Text, Value};
use crate::source::Span;
use crate::units;

/// Whole numbers that fit the type asked for.
pub(super) fn integer<T: TryFrom<i64>>(table: Option<&Table>, key: &str) -> Option<T> {
    match table?.node(key)?.value {
        Value::Integer(number) => T::try_from(number).ok(),
        _ => None,
    }
}

pub(super) fn boolean(table: Option<&Table>, key: &str) -> Option<bool> {
    match table?.node(key)?.value {
        Value::Boolean(value) => Some(value),
        _ => None,
    }
}

pub(super) fn text<'t>(table: Option<&'t Table>, key: &str) -> Option<&'t str> {
    table?.node(key)?.as_text()
}

pub(super) fn choice<T: Choice>(table: Option<&Table>, key: &str) -> Option<T> {
    T::of(text(table, key)?)
}

pub(super) fn duration(table: Option<&Table>, key: &str) -> Option<Duration> {
    units::duration(text(table, key)?).ok()
}

pub(super) fn size(table: Option<&Table>, key: &str) -> Option<u64> {
    measure(table, key, units::size)
}

fn measure<E>(table: Option<&Table>, key: &str, parse: fn(&str) -> Result<u64, E>) -> Option<u64> {
    match &table?.node(key)?.value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Text(text) => parse(&text.value).ok(),
        _ => None,
    }
}

/// One value, or the elements of a list.
pub(super) fn several(node: &Node) -> &[Node] {
    match &node.value {
        Value::List(items) => items,
        Value::Broken => &[],
        _ => std::slice::from_ref(node),
    }
}

/// The strings of a value that is one or a list of them.
pub(super) fn texts(node: &Node) -> impl Iterator<Item = (&Text, Span)> {
    several(node)
        .iter()
        .filter_map(|item| Some((item.written()?, item.span)))
}

/// What a message may show of a value.
pub(super) fn shown(node: &Node) -> &str {
    match &node.value {
        Value::Text(text) => text.shown(),
        _ => "",
    }
}
