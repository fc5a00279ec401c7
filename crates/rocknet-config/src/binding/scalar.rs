//! Reading and rendering of the types of the model that are written as one value.

use std::time::Duration;

use super::kind::Kind;
use super::rendered::Rendered;
use crate::choice::{Choice, Word};
use crate::file::{Node, Value};
use crate::units;

/// Type of the model that is written as one value.
pub(crate) trait Scalar: Sized {
    /// Reads a value whose kind was checked; `None` if the value is invalid, which has already been reported.
    fn read(kind: &Kind, node: &Node) -> Option<Self>;

    /// Renders the value in the unit of its kind.
    fn render(&self, kind: &Kind) -> Rendered;
}

impl Scalar for bool {
    fn read(_: &Kind, node: &Node) -> Option<bool> {
        match node.value {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }

    fn render(&self, _: &Kind) -> Rendered {
        Rendered::Value(self.to_string())
    }
}

impl Scalar for Duration {
    fn read(_: &Kind, node: &Node) -> Option<Duration> {
        units::duration(node.as_text()?).ok()
    }

    fn render(&self, _: &Kind) -> Rendered {
        Rendered::text(&units::format_timeout(*self))
    }
}

impl<T: Choice> Scalar for T {
    fn read(_: &Kind, node: &Node) -> Option<T> {
        T::of(node.as_text()?)
    }

    fn render(&self, _: &Kind) -> Rendered {
        self.written().map_or(Rendered::Unset, Rendered::text)
    }
}

macro_rules! numbers {
    ($($number:ty)+) => {
        $(impl Scalar for $number {
            fn read(kind: &Kind, node: &Node) -> Option<$number> {
                <$number>::try_from(number(kind, node)?).ok()
            }

            fn render(&self, kind: &Kind) -> Rendered {
                render_number(kind, *self as u64)
            }
        })+
    };
}

// All of these types fit in `u64`, and no key of `Kind::Integer` accepts a negative number.
numbers!(u16 u32 u64 usize);

/// Reads and renders `None` as a word that the kind accepts in addition to other values, such as `"auto"` or `"off"`.
/// If the kind has no such word, `None` renders as unset.
impl<T: Scalar> Scalar for Option<T> {
    fn read(kind: &Kind, node: &Node) -> Option<Option<T>> {
        match node.as_text() {
            Some(text) if words(kind).iter().any(|word| word.text == text) => Some(None),
            _ => T::read(kind, node).map(Some),
        }
    }

    fn render(&self, kind: &Kind) -> Rendered {
        match self {
            Some(value) => value.render(kind),
            None => words(kind)
                .first()
                .map_or(Rendered::Unset, |word| Rendered::text(word.text)),
        }
    }
}

impl Scalar for String {
    fn read(_: &Kind, node: &Node) -> Option<String> {
        node.as_text().map(str::to_owned)
    }

    fn render(&self, _: &Kind) -> Rendered {
        Rendered::text(self)
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

/// Renders a number in the unit of its kind. If there are alternative kinds, the first size or rate sets the unit.
fn render_number(kind: &Kind, number: u64) -> Rendered {
    match kind {
        Kind::Size { .. } => Rendered::text(&units::format_size(number)),
        Kind::Rate { .. } => Rendered::text(&format!("{}/s", units::format_size(number))),
        Kind::Either(kinds) => match kinds
            .iter()
            .find(|kind| matches!(kind, Kind::Size { .. } | Kind::Rate { .. }))
        {
            Some(kind) => render_number(kind, number),
            None => Rendered::Value(number.to_string()),
        },
        _ => Rendered::Value(number.to_string()),
    }
}

/// Returns the words of a [`Kind::Choice`].
fn choice_words(kind: &Kind) -> Option<&'static [Word]> {
    match kind {
        Kind::Choice(words) => Some(words),
        _ => None,
    }
}

/// Returns the words that a kind accepts in addition to other values.
fn words(kind: &Kind) -> &'static [Word] {
    match kind {
        Kind::Either(kinds) => kinds.iter().find_map(choice_words).unwrap_or_default(),
        _ => &[],
    }
}
