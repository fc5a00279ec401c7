//! Insertion of keys into the tree of tables. TOML allows each table to be defined only once, and in one way.

use crate::file::{Entry, Node, Origin, Table, Value};
use crate::source::Span;

/// Maximum number of parts of a dotted key or header; `site."example.com".route."/x".headers.A` has six.
pub(crate) const MAX_KEY_PARTS: usize = 8;

/// Reason why a key cannot be inserted.
pub(super) enum KeyConflict {
    /// The key or table is already defined at `first`.
    Duplicate { name: String, span: Span, first: Span },
    /// The key has more than [`MAX_KEY_PARTS`] parts. Contains the span of the first part beyond them.
    TooDeep(Span),
}

/// Returns an error if a key has more than [`MAX_KEY_PARTS`] parts.
fn check_depth(keys: &[(String, Span)]) -> Result<(), KeyConflict> {
    match keys.get(MAX_KEY_PARTS) {
        Some((_, span)) => Err(KeyConflict::TooDeep(*span)),
        None => Ok(()),
    }
}

/// Inserts a value under a dotted key. `origin`: the origin of the tables that are created for the parts before the
/// last.
pub(super) fn insert(
    table: &mut Table,
    keys: &[(String, Span)],
    node: Node,
    origin: Origin,
) -> Result<(), KeyConflict> {
    check_depth(keys)?;
    let Some(((name, span), parents)) = keys.split_last() else {
        return Ok(());
    };
    let parent = table_at(table, parents, origin)?;
    if let Some(entry) = parent.entries.get(name) {
        return Err(KeyConflict::Duplicate {
            name: name.clone(),
            span: *span,
            first: entry.key,
        });
    }
    parent.entries.insert(name.clone(), Entry { key: *span, node });
    Ok(())
}

/// Defines the table of a header, `[a.b]` or `[[a.b]]`.
pub(super) fn open(root: &mut Table, keys: &[(String, Span)], is_list: bool) -> Result<(), KeyConflict> {
    check_depth(keys)?;
    let Some(((name, span), parents)) = keys.split_last() else {
        return Ok(());
    };
    let parent = table_at(root, parents, Origin::Implied)?;
    if is_list {
        return open_item(parent, name, *span);
    }
    let Some(entry) = parent.entries.get_mut(name) else {
        let node = Node {
            value: Value::Table(Table::new(Origin::Header)),
            span: *span,
        };
        parent.entries.insert(name.clone(), Entry { key: *span, node });
        return Ok(());
    };
    match &mut entry.node.value {
        Value::Table(table) if table.origin == Origin::Implied => {
            table.origin = Origin::Header;
            entry.key = *span;
            entry.node.span = *span;
            Ok(())
        }
        _ => Err(KeyConflict::Duplicate {
            name: name.clone(),
            span: *span,
            first: entry.key,
        }),
    }
}

/// Returns the table at a path. Missing tables are created with this origin.
fn table_at<'t>(
    mut table: &'t mut Table,
    keys: &[(String, Span)],
    origin: Origin,
) -> Result<&'t mut Table, KeyConflict> {
    for (name, span) in keys {
        let entry = table.entries.entry(name.clone()).or_insert_with(|| {
            let node = Node {
                value: Value::Table(Table::new(origin)),
                span: *span,
            };
            Entry { key: *span, node }
        });
        let first = entry.key;
        let duplicate = || KeyConflict::Duplicate {
            name: name.clone(),
            span: *span,
            first,
        };
        table = match &mut entry.node.value {
            // A header may add to any table except an inline one; a dotted key only to tables that dotted keys defined.
            Value::Table(inner) => match (origin, inner.origin) {
                (_, Origin::Inline) => return Err(duplicate()),
                (Origin::Dotted, Origin::Header | Origin::Implied) => return Err(duplicate()),
                _ => inner,
            },
            // In a header, the name of an array of tables stands for its last element.
            Value::List(items) if origin == Origin::Implied => match items.last_mut().map(|n| &mut n.value) {
                Some(Value::Table(inner)) if inner.origin == Origin::Header => inner,
                _ => return Err(duplicate()),
            },
            _ => return Err(duplicate()),
        };
    }
    Ok(table)
}

/// Returns the table of the current header, which [`open`] has created. The conflict for a missing table is therefore
/// never returned.
pub(super) fn descend<'t>(mut table: &'t mut Table, keys: &[(String, Span)]) -> Result<&'t mut Table, KeyConflict> {
    for (name, span) in keys {
        let missing = || KeyConflict::Duplicate {
            name: name.clone(),
            span: *span,
            first: *span,
        };
        let entry = table.entries.get_mut(name).ok_or_else(missing)?;
        table = match &mut entry.node.value {
            Value::Table(inner) => inner,
            Value::List(items) => match items.last_mut().map(|n| &mut n.value) {
                Some(Value::Table(inner)) => inner,
                _ => return Err(missing()),
            },
            _ => return Err(missing()),
        };
    }
    Ok(table)
}

/// Adds an element to an array of tables.
fn open_item(parent: &mut Table, name: &str, span: Span) -> Result<(), KeyConflict> {
    let item = Node {
        value: Value::Table(Table::new(Origin::Header)),
        span,
    };
    match parent.entries.get_mut(name) {
        None => {
            let node = Node {
                value: Value::List(vec![item]),
                span,
            };
            parent.entries.insert(name.to_owned(), Entry { key: span, node });
            Ok(())
        }
        Some(entry) => match &mut entry.node.value {
            Value::List(items)
                if items
                    .last()
                    .and_then(Node::as_table)
                    .is_some_and(|t| t.origin == Origin::Header) =>
            {
                items.push(item);
                Ok(())
            }
            _ => Err(KeyConflict::Duplicate {
                name: name.to_owned(),
                span,
                first: entry.key,
            }),
        },
    }
}
