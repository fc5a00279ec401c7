//! Types of the model that are written as one value: how each is read and written.

use std::time::Duration;

use super::kind::Kind;
use super::shown::Shown;
use crate::choice::{Choice, Word};
use crate::file::{Node, Value};
use crate::units;

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
