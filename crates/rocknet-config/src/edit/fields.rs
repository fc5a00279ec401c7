//! Fields of a form: the text of a key, and the edits that a changed text makes.

use toml_edit::{Array, InlineTable, Item, TableLike, Value};

use super::{EditError, Editor, text as quoted};
use crate::form::{Field, FieldInput, OWN_FILES};
use crate::keys::Kind;

/// Value of a key, as a field of a form shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// The key is not written.
    Missing,
    /// Text of the field.
    Text(String),
    /// Value as TOML that the field cannot show.
    Other(String),
}

/// Keys of a certificate in the table `tls`.
const CERTIFICATE: [&str; 3] = ["cert", "key", "ocsp"];

impl Editor {
    /// Returns the value of a field of a site.
    pub fn field(&self, site: &str, field: &Field) -> FieldValue {
        let path = self.field_path(site, field);
        let mut item = self.document.as_item();
        for part in &path {
            match item.as_table_like().and_then(|table| table.get(part)) {
                Some(inner) => item = inner,
                None => return FieldValue::Missing,
            }
        }
        let shown = match (field.path, item.as_table_like()) {
            (["tls"], Some(tls)) => Some(tls_word(tls)),
            _ => shown(item, field.input()),
        };
        match shown {
            Some(text) => FieldValue::Text(text),
            None => FieldValue::Other(item.to_string().trim().to_owned()),
        }
    }

    /// Sets a field of a site. An empty text removes the key. Elements and entries that stay keep their comments.
    ///
    /// # Errors
    ///
    /// Fails if there is no such site, if a line of a map is not `name = value`, or if the field cannot show the
    /// present value.
    pub fn set_field(&mut self, site: &str, field: &Field, text: &str) -> Result<(), EditError> {
        if self.depth(&["site", site]) < 2 {
            return Err(EditError::NoSite(site.to_owned()));
        }
        match self.field(site, field) {
            FieldValue::Other(value) => return Err(EditError::NotAField(value)),
            FieldValue::Text(present) if present == text => return Ok(()),
            FieldValue::Text(_) | FieldValue::Missing => {}
        }
        if field.path == ["tls"] {
            return self.set_encryption(site, text.trim());
        }
        let path = self.field_path(site, field);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let is_empty = text.trim().is_empty();
        if is_empty {
            self.remove(&path);
            self.remove_empty_parent(&path);
            return Ok(());
        }
        let kind = field.key().map(|key| &key.kind);
        let literal = |text: &str| kind.map_or_else(|| quoted(text), |kind| literal(kind, text));
        match field.input() {
            FieldInput::Switch | FieldInput::Choice | FieldInput::Text => {
                self.set_in_table(&path, &literal(text.trim()))
            }
            FieldInput::List => self.set_list(&path, &lines(text).map(literal).collect::<Vec<_>>()),
            FieldInput::Map => self.set_map(&path, text, &literal),
        }
    }

    /// Returns the path of the value that a field shows. If the key is written in its long form, a table, the path
    /// leads to the key of that table that contains the value.
    fn field_path(&self, site: &str, field: &Field) -> Vec<String> {
        let mut path: Vec<String> = ["site", site]
            .iter()
            .chain(field.path)
            .map(|part| (*part).to_owned())
            .collect();
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        if let (Some(long), Some(table)) = (field.long, self.table(&parts))
            && field.is_long_form(table.iter().map(|(name, _)| name))
        {
            path.push(long.to_owned());
        }
        path
    }

    /// Returns the table at a path; `None` if there is no table.
    fn table(&self, path: &[&str]) -> Option<&dyn TableLike> {
        let mut item = self.document.as_item();
        for part in path {
            item = item.as_table_like()?.get(part)?;
        }
        item.as_table_like()
    }

    /// Sets a key. A missing table below the site is written as an inline table. The first two parts of `path` are
    /// `site` and the name of the site.
    fn set_in_table(&mut self, path: &[&str], value: &str) -> Result<(), EditError> {
        if let [parents @ .., key] = path
            && parents.len() > 2
            && self.table(parents).is_none()
        {
            // A value such as `tls = "auto"` is replaced by the table.
            return self.set(parents, &format!("{{ {key} = {value} }}"));
        }
        self.set(path, value)
    }

    /// Removes the table of a key if it has become empty and is not the table of the site. The first two parts of
    /// `path` are `site` and the name of the site.
    fn remove_empty_parent(&mut self, path: &[&str]) {
        if let [parents @ .., _] = path
            && parents.len() > 2
            && self.table(parents).is_some_and(TableLike::is_empty)
        {
            self.remove(parents);
        }
    }

    /// Sets `tls` of a site to a word. Settings other than the origin of the certificate stay, unless TLS is off.
    /// An empty word selects the default.
    fn set_encryption(&mut self, site: &str, word: &str) -> Result<(), EditError> {
        let path = ["site", site, "tls"];
        let Some(tls) = self.table(&path) else {
            return match word {
                "" => {
                    self.remove(&path);
                    Ok(())
                }
                // Nothing is written yet: the field of the certificate file creates the table.
                word if word == OWN_FILES.text => Ok(()),
                word => self.set(&path, &quoted(word)),
            };
        };
        if word == OWN_FILES.text {
            return Ok(());
        }
        // True if the table has settings other than the origin of the certificate.
        let has_more = tls
            .iter()
            .any(|(name, _)| !CERTIFICATE.contains(&name) && name != "issuer");
        if !has_more || word == "off" {
            if word.is_empty() {
                self.remove(&path);
                return Ok(());
            }
            return match self.set(&path, &quoted(word)) {
                // `set` does not replace a table with a header of its own, so the table is removed first.
                Err(EditError::IsATable(_)) => {
                    self.remove(&path);
                    self.set(&path, &quoted(word))
                }
                set => set,
            };
        }
        for key in CERTIFICATE.into_iter().chain(["issuer"]) {
            self.remove(&["site", site, "tls", key]);
        }
        match word {
            "" | "auto" => Ok(()),
            word => self.set(&["site", site, "tls", "issuer"], &quoted(word)),
        }
    }

    /// Sets a list to elements in TOML. A list of one element may be written as the element.
    fn set_list(&mut self, path: &[&str], elements: &[String]) -> Result<(), EditError> {
        if let Some(array) = self.array(path) {
            return update(array, elements);
        }
        match elements {
            [one] => self.set_in_table(path, one),
            several => self.set_in_table(path, &format!("[{}]", several.join(", "))),
        }
    }

    /// Returns the list at a path; `None` if there is no list.
    fn array(&mut self, path: &[&str]) -> Option<&mut Array> {
        let mut item = self.document.as_item_mut();
        for part in path {
            item = item.as_table_like_mut()?.get_mut(part)?;
        }
        item.as_array_mut()
    }

    /// Sets the entries of a map to those of a text with lines `name = value`. `literal` converts a value to TOML.
    fn set_map(&mut self, path: &[&str], text: &str, literal: &dyn Fn(&str) -> String) -> Result<(), EditError> {
        let mut entries = Vec::new();
        for line in lines(text) {
            let (name, value) = line
                .split_once(" = ")
                .or_else(|| line.split_once('='))
                .ok_or_else(|| EditError::NotAnEntry(line.to_owned()))?;
            let value = value.trim();
            let is_table = value.starts_with('{') && super::is_value(value);
            entries.push((name.trim(), if is_table { value.to_owned() } else { literal(value) }));
        }
        let Some(table) = self.table(path) else {
            let mut inline = InlineTable::new();
            for (name, value) in &entries {
                inline.insert(*name, value.parse().map_err(|_| EditError::NotAValue(value.clone()))?);
            }
            return self.set_in_table(path, &inline.to_string());
        };
        let present: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
        for name in present
            .iter()
            .filter(|name| entries.iter().all(|(wanted, _)| wanted != name))
        {
            self.remove(&[path, &[name.as_str()]].concat());
        }
        for (name, value) in entries {
            let path = [path, &[name]].concat();
            if self.value(&path).as_deref() != Some(&*value) {
                self.set(&path, &value)?;
            }
        }
        Ok(())
    }
}

/// Returns the texts of the default and of the example of a field; a missing one is empty.
pub fn samples(field: &Field) -> (String, String) {
    let (Some(key), [parents @ .., _]) = (field.key(), field.path) else {
        return (String::new(), String::new());
    };
    let text = |lines: &str| {
        let header: String = parents.iter().map(|parent| format!(".{parent}")).collect();
        let editor = Editor::new(&format!("[site.x{header}]\n{lines}\n"));
        match editor.map(|editor| editor.field("x", field)) {
            Ok(FieldValue::Text(text)) => text,
            _ => String::new(),
        }
    };
    let default = match key.default_value() {
        value if value.is_empty() => value,
        value => text(&format!("{} = {value}", key.name)),
    };
    (default, text(key.example))
}

/// Returns the word for the origin of the certificate in a table `tls`.
fn tls_word(tls: &dyn TableLike) -> String {
    let issuer = tls.get("issuer").and_then(Item::as_str);
    match (tls.contains_key("cert"), issuer) {
        (true, _) => OWN_FILES.text.to_owned(),
        (false, issuer) => issuer.unwrap_or("auto").to_owned(),
    }
}

/// Returns the text of a value in an input; `None` if the input cannot show it.
fn shown(item: &Item, input: FieldInput) -> Option<String> {
    match input {
        FieldInput::Map => {
            let mut text = String::new();
            for (name, value) in item.as_table_like()?.iter() {
                let value = match (scalar(value), value) {
                    (Some(value), _) => value,
                    (None, Item::Value(value)) => one_line(value)?,
                    (None, _) => return None,
                };
                // Such a name could not be read back from a line `name = value`.
                if name.contains(['=', '\n']) {
                    return None;
                }
                text.push_str(&format!("{name} = {value}\n"));
            }
            Some(text)
        }
        FieldInput::List => match item.as_array() {
            None => scalar(item),
            Some(array) => {
                let elements: Option<Vec<String>> = array.iter().map(scalar_value).collect();
                Some(elements?.join("\n"))
            }
        },
        FieldInput::Switch | FieldInput::Choice | FieldInput::Text => scalar(item),
    }
}

/// Returns the text of the value of an item in one line; `None` for lists and tables.
fn scalar(item: &Item) -> Option<String> {
    item.as_value().and_then(scalar_value)
}

/// Returns the text of a value in one line; `None` for lists and tables.
fn scalar_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.value().clone()).filter(|text| !text.contains('\n')),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(value) => Some(value.value().to_string()),
        _ => None,
    }
}

/// Returns a value as TOML; `None` if it takes several lines.
fn one_line(value: &Value) -> Option<String> {
    let text = value.clone().decorated("", "").to_string();
    Some(text).filter(|text| !text.contains('\n'))
}

/// Returns the lines of a text without surrounding spaces. Empty lines are left out.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Returns the TOML value of a text for a key of a kind.
fn literal(kind: &Kind, text: &str) -> String {
    let is_boolean = matches!(text, "true" | "false") && accepts(kind, &|kind| matches!(kind, Kind::Boolean));
    let is_number = text.parse::<i64>().is_ok()
        && accepts(kind, &|kind| {
            matches!(kind, Kind::Integer { .. } | Kind::Size { .. } | Kind::Rate { .. })
        });
    if is_boolean || is_number {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Returns true if a kind, one of its alternatives, or the kind of its elements is wanted.
fn accepts(kind: &Kind, is_wanted: &dyn Fn(&Kind) -> bool) -> bool {
    is_wanted(kind)
        || match kind {
            Kind::Either(kinds) => kinds.iter().any(|kind| accepts(kind, is_wanted)),
            Kind::List(inner) | Kind::Several(inner) => accepts(inner, is_wanted),
            _ => false,
        }
}

/// Changes a list to other elements. Elements that stay keep their comments, unless their order changes.
fn update(array: &mut Array, elements: &[String]) -> Result<(), EditError> {
    let same = |value: &Value, text: &String| one_line(value).as_ref() == Some(text);
    remove_others(array, &|value| elements.iter().any(|text| same(value, text)));
    let is_prefix = array.len() <= elements.len() && array.iter().zip(elements).all(|(value, text)| same(value, text));
    if !is_prefix {
        array.clear();
    }
    for text in &elements[array.len()..] {
        let mut value: Value = text.parse().map_err(|_| EditError::NotAValue(text.clone()))?;
        let prefix = match array.iter().last() {
            None => String::new(),
            Some(last) => match split_comments(prefix(last)) {
                (_, indent) if indent.starts_with('\n') => indent.to_owned(),
                _ => " ".to_owned(),
            },
        };
        value.decor_mut().set_prefix(prefix);
        array.push_formatted(value);
    }
    Ok(())
}

/// Removes the elements that are not wanted. `toml_edit` stores the comment after an element in the prefix of the next
/// element. So the prefix of a removed element may contain the comment of the element before it, which is kept.
fn remove_others(array: &mut Array, is_wanted: &dyn Fn(&Value) -> bool) {
    let mut kept = Array::new();
    let mut comments = String::new();
    for value in array.iter() {
        if is_wanted(value) {
            let mut value = value.clone();
            let prefix = std::mem::take(&mut comments) + prefix(&value);
            value.decor_mut().set_prefix(prefix);
            kept.push_formatted(value);
        } else {
            comments.push_str(split_comments(prefix(value)).0);
        }
    }
    if kept.len() == array.len() {
        return;
    }
    comments.push_str(array.trailing().as_str().unwrap_or_default());
    kept.set_trailing(comments);
    kept.set_trailing_comma(array.trailing_comma() && !kept.is_empty());
    *kept.decor_mut() = array.decor().clone();
    *array = kept;
}

/// Returns the spaces, line breaks and comments before an element.
fn prefix(value: &Value) -> &str {
    value
        .decor()
        .prefix()
        .and_then(|prefix| prefix.as_str())
        .unwrap_or_default()
}

/// Splits the prefix of an element into the comments and the last line, which begins with a line break and contains the
/// indentation of the element.
fn split_comments(prefix: &str) -> (&str, &str) {
    prefix.split_at(prefix.rfind('\n').unwrap_or(0))
}

#[cfg(test)]
mod tests;
