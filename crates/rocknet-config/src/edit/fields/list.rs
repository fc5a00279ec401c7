//! Replaces the elements of a list, and keeps its layout and its comments.
//!
//! The text between two elements is called a gap. `toml_edit` stores it as the prefix of the second element, so a
//! comment at the end of a line belongs to the gap before the next element.

use toml_edit::{Array, Value};

/// Replaces the elements of a list. `elements`: texts, each with its TOML. An old element keeps its spelling, such as
/// its quotes, if its text occurs in `elements` after that of the previous kept element. All comments stay, even those
/// of removed elements.
///
/// # Errors
///
/// Returns the TOML of the first new element that is not a value.
pub(super) fn update(array: &mut Array, elements: &[(String, String)]) -> Result<(), String> {
    let positions = kept(array, elements);
    if array.len() == elements.len() && positions.iter().all(Option::is_some) {
        return Ok(());
    }
    let mut list = ListWriter::new(array);
    let last = array.len().saturating_sub(1);
    let mut suffix = String::new();
    // Number of elements in `elements` that the new list already has.
    let mut written = 0;
    for (at, (value, position)) in array.iter().zip(positions).enumerate() {
        let (prefix, after) = decor(value);
        let end = position.unwrap_or(written);
        list.gap(prefix, &elements[written..end])?;
        // If no comma follows the last element, the text after the element is its suffix. That text moves to the end of
        // the new list, after any added elements.
        let after = if at == last {
            after.clone_into(&mut suffix);
            ""
        } else {
            after
        };
        match position {
            Some(position) => {
                list.keep(at, value, after);
                written = position + 1;
            }
            None => list.pending = joined(&list.pending, after),
        }
    }
    let trailing = array.trailing().as_str().unwrap_or_default();
    list.gap(&(suffix + trailing), &elements[written..])?;
    let mut new = list.new;
    new.set_trailing(list.pending);
    new.set_trailing_comma(array.trailing_comma() && !new.is_empty());
    *new.decor_mut() = array.decor().clone();
    *array = new;
    Ok(())
}

/// Returns the position of each element of a list in `elements`; `None` for elements that are removed, or that are
/// written again at another position.
fn kept(array: &Array, elements: &[(String, String)]) -> Vec<Option<usize>> {
    let mut from = 0;
    let position = |value: &Value| {
        let text = element_text(value)?;
        let position = from + elements[from..].iter().position(|(wanted, _)| *wanted == text)?;
        from = position + 1;
        Some(position)
    };
    array.iter().map(position).collect()
}

/// Returns the text of a value in one line; `None` for a string of several lines, and for values other than strings,
/// integers and booleans.
pub(super) fn scalar_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()).filter(|text| !text.contains('\n')),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(value) => Some(value.value().to_string()),
        _ => None,
    }
}

/// Returns the text of an element of a list. A form has one line for each element, trims the lines, and skips empty
/// ones. Returns `None` if the element cannot be such a line, because it is empty or has spaces around its text.
pub(super) fn element_text(value: &Value) -> Option<String> {
    scalar_value(value).filter(|text| !text.is_empty() && text.trim() == text)
}

/// Writer of the new list.
struct ListWriter {
    new: Array,
    /// Text before the next element.
    pending: String,
    /// Text before a new first element, and before any other new element.
    indents: [String; 2],
}

impl ListWriter {
    fn new(array: &Array) -> ListWriter {
        let first = array.iter().next().map_or("", |value| indent(decor(value).0));
        let further = match array.iter().last().map_or("", |value| indent(decor(value).0)) {
            indent if indent.contains('\n') => indent,
            _ => " ",
        };
        ListWriter {
            new: Array::new(),
            pending: String::new(),
            indents: [first.to_owned(), further.to_owned()],
        }
    }

    /// Copies a gap of the old list, and adds new elements in it.
    fn gap(&mut self, gap: &str, elements: &[(String, String)]) -> Result<(), String> {
        // A comment in the first line of a gap belongs to the element before the gap.
        let at = match gap.find('\n') {
            Some(at) if !elements.is_empty() && gap[..at].contains('#') => at,
            _ => 0,
        };
        if at > 0 {
            self.pending = joined(&self.pending, &gap[..=at]);
        }
        for (_, literal) in elements {
            let mut value: Value = literal.parse().map_err(|_| literal.clone())?;
            let prefix = joined(&self.pending, &self.indents[usize::from(!self.new.is_empty())]);
            value.decor_mut().set_prefix(prefix);
            self.new.push_formatted(value);
            self.pending.clear();
        }
        self.pending = joined(&self.pending, &gap[at..]);
        Ok(())
    }

    /// Adds the element `at` of the old list.
    fn keep(&mut self, at: usize, value: &Value, suffix: &str) {
        let mut prefix = std::mem::take(&mut self.pending);
        // On one line, an element that becomes or ceases to be the first one gets the spaces of its new position.
        if !prefix.contains('\n') {
            match (at, self.new.len()) {
                (1.., 0) => prefix.clone_from(&self.indents[0]),
                (0, 1..) => prefix.clone_from(&self.indents[1]),
                _ => {}
            }
        }
        self.new.push_formatted(value.clone().decorated(prefix, suffix));
    }
}

/// Joins two texts between elements. Drops the first text if it has no comment. Otherwise keeps a line end and
/// one indentation after the comment, because a TOML comment ends with its line.
fn joined(first: &str, second: &str) -> String {
    let starts_line = second.trim_start_matches([' ', '\t']).starts_with('\n');
    match first.contains('#') {
        false => second.to_owned(),
        // The line end of `second` replaces that of `first`.
        true if starts_line => first.trim_end().to_owned() + second,
        true if first.ends_with('\n') => first.to_owned() + second,
        // `first` ends with the indentation of the next line, which replaces that of `second`.
        true => first.to_owned() + second.trim_start(),
    }
}

/// Returns the text before and after an element.
fn decor(value: &Value) -> (&str, &str) {
    let decor = value.decor();
    let [prefix, suffix] = [decor.prefix(), decor.suffix()].map(|raw| raw.and_then(|raw| raw.as_str()));
    (prefix.unwrap_or_default(), suffix.unwrap_or_default())
}

/// Returns the last line of the text before an element, with the newline before it.
fn indent(prefix: &str) -> &str {
    match prefix.rfind('\n') {
        Some(at) => &prefix[at..],
        None => prefix,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::edit::Editor;
    use crate::form;

    /// Replaces a list of a site with the lines of `text`, and returns the new list as written.
    fn changed(list: &str, text: &str) -> String {
        let mut editor = Editor::new(&format!("[site.\"a.test\"]\ndeny = {list}\n")).unwrap();
        editor.set_field("a.test", form::find("deny").unwrap(), text).unwrap();
        let text = editor.to_string();
        Editor::new(&text).unwrap_or_else(|_| panic!("{text}"));
        text.trim().rsplit_once("deny = ").unwrap().1.to_owned()
    }

    #[test]
    fn changed_lists_keep_layout_and_comments() {
        for (list, text, expected) in [
            // A comment of a kept element does not hide the element after the removed one.
            (
                "[\n  \"1\", # x\n  \"2\", \"3\",\n]",
                "1\n3",
                "[\n  \"1\", # x\n  \"3\",\n]",
            ),
            ("[ \"1\", # me\n \"2\" ]", "1", "[ \"1\" # me\n ]"),
            ("['1', \"2\"]", "1\n3", "['1', \"3\"]"),
            ("[ '1', '2' ]", "2", "[ '2' ]"),
            ("['1']", "2\n1", "[\"2\", '1']"),
            ("[\n  '1', # x\n]", "1\n2", "[\n  '1', # x\n  \"2\",\n]"),
            ("[ '1' # x\n]", "1\n2", "[ '1', # x\n \"2\"\n]"),
            (
                "[\n  # a\n  '1', # b\n  # c\n  '3',\n]",
                "1\n2\n3",
                "[\n  # a\n  '1', # b\n  \"2\",\n  # c\n  '3',\n]",
            ),
            ("[\n  '1', # x\n  '2', # y\n]", "3", "[ # x\n  # y\n  \"3\",\n]"),
        ] {
            assert_eq!(changed(list, text), expected, "{list} {text:?}");
        }
    }

    proptest! {
        #[test]
        fn changed_lists_have_the_wanted_elements_and_all_comments(
            old in prop::collection::vec((0_u8..6, "['\"]", gap(), gap()), 1..6),
            end in gap(),
            has_comma in any::<bool>(),
            wanted in prop::collection::vec(0_u8..9, 1..6),
        ) {
            let mut list = "[".to_owned();
            for (at, (element, quote, before, after)) in old.iter().enumerate() {
                let comma = if has_comma || at + 1 < old.len() { "," } else { "" };
                list.push_str(&format!("{before}{quote}{element}{quote}{after}{comma}"));
            }
            list.push_str(&format!("{end}]"));
            // Numbers the comments.
            let mut parts = list.split('#');
            let mut list = parts.next().unwrap().to_owned();
            let mut comments = Vec::new();
            for (at, part) in parts.enumerate() {
                comments.push(format!("#{at};"));
                list.push_str(&format!("#{at};{part}"));
            }
            let wanted: Vec<String> = wanted.iter().map(u8::to_string).collect();
            let text = changed(&list, &wanted.join("\n"));
            let new: toml_edit::Value = text.parse().unwrap();
            let elements: Vec<&str> = new.as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect();
            prop_assert_eq!(elements, wanted, "{} {}", list, text);
            for comment in comments {
                prop_assert_eq!(text.matches(&comment).count(), 1, "{} {} {}", comment, list, text);
            }
        }
    }

    /// Returns texts that may stand between elements.
    fn gap() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop_oneof![
                Just(" "),
                Just("\t"),
                Just("\n"),
                Just("\r\n"),
                Just("# c\n"),
                Just("# c\r\n")
            ],
            0..4,
        )
        .prop_map(|parts| parts.concat())
    }
}
