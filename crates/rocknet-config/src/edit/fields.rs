//! Fields of a form: the text of a key, and the edits that a changed text makes.

use std::collections::HashSet;

use toml_edit::{Array, InlineTable, Item, TableLike, Value};

use super::{EditError, Editor, text as quoted};
use crate::form::{Field, FieldInput, OWN_FILES};
use crate::keys::Kind;

mod list;
mod nested;

use list::{element_text, scalar_value};

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
    /// Returns the value of a field of a site or of the server. For a field of the server, `site` is ignored.
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
            (["cache"], Some(cache)) => nested::cache_word(cache),
            (_, Some(table)) if is_replaced(field, table) => None,
            _ => shown(item, field.input()),
        };
        let shown = shown.filter(|text| is_offered(text, field));
        match shown {
            Some(text) => FieldValue::Text(text),
            None => FieldValue::Other(item.to_string().trim().to_owned()),
        }
    }

    /// Sets a field of a site, or of the server. An empty text removes the key. Elements and entries that stay keep
    /// their comments.
    ///
    /// # Errors
    ///
    /// Fails if there is no such site, if a line of a map is not `name = value`, if two lines have one name, or
    /// if the field cannot show the present value.
    pub fn set_field(&mut self, site: &str, field: &Field, text: &str) -> Result<(), EditError> {
        if !field.is_of_server() && self.depth(&["site", site]) < 2 {
            return Err(EditError::NoSite(site.to_owned()));
        }
        match self.field(site, field) {
            FieldValue::Other(value) => return Err(EditError::NotAField(value)),
            FieldValue::Text(present) if present == text => return Ok(()),
            FieldValue::Text(_) | FieldValue::Missing => {}
        }
        match field.path {
            ["tls"] => return self.set_encryption(site, text.trim()),
            ["cache"] => return self.set_cache(site, text.trim()),
            ["cache", "ttl"] => return self.set_lifetime(site, text.trim()),
            ["auth", "file"] => return self.set_password_file(site, text.trim()),
            ["auth", "forward"] => return self.set_authorization_service(site, text.trim()),
            _ => {}
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
        let to_toml = |text: &str| kind.map_or_else(|| quoted(text), |kind| literal(kind, text));
        match field.input() {
            FieldInput::Switch | FieldInput::Choice | FieldInput::Text => {
                self.set_in_table(&path, &to_toml(text.trim()))
            }
            FieldInput::List => {
                let elements = lines(text).map(|line| (line.to_owned(), to_toml(line)));
                self.set_list(&path, &elements.collect::<Vec<_>>())
            }
            FieldInput::Map => self.set_map(&path, text, &to_toml),
        }
    }

    /// Returns the path of the value that a field shows. If the key is written in its long form, a table, returns the
    /// path of the key in that table that contains the value.
    fn field_path(&self, site: &str, field: &Field) -> Vec<String> {
        let base = ["site", site];
        let base = if field.is_of_server() { &[][..] } else { &base };
        let mut path: Vec<String> = base.iter().chain(field.path).map(|part| (*part).to_owned()).collect();
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        if let (Some(long), Some(table)) = (field.long, self.table(&parts))
            && !is_replaced(field, table)
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

    /// Sets a key. A missing table below the site is written as an inline table. In the path of a key of a site, the
    /// first two parts are `site` and the name of the site.
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

    /// Removes the table of a key if it has become empty and is not the table of the site. In the path of a key of a
    /// site, the first two parts are `site` and the name of the site.
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
                // Nothing is changed yet: setting the field of the certificate file creates the table.
                word if word == OWN_FILES.text => Ok(()),
                word => self.set(&path, &quoted(word)),
            };
        };
        if word == OWN_FILES.text {
            // The fields of the files are set next. The check of the configuration refuses an issuer beside them.
            self.remove(&["site", site, "tls", "issuer"]);
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
            return self.replace(&path, &quoted(word));
        }
        for key in CERTIFICATE.into_iter().chain(["issuer"]) {
            self.remove(&["site", site, "tls", key]);
        }
        match word {
            // Without `issuer` and `cert`, `auto` applies.
            "" | "auto" => Ok(()),
            word => self.set(&["site", site, "tls", "issuer"], &quoted(word)),
        }
    }

    /// Sets a key that may be a table.
    fn replace(&mut self, path: &[&str], value: &str) -> Result<(), EditError> {
        match self.set(path, value) {
            // `set` does not replace a table with a header of its own, so the table is removed first.
            Err(EditError::IsATable(_)) => {
                self.remove(path);
                self.set(path, value)
            }
            set => set,
        }
    }

    /// Replaces the elements of a list. `elements`: texts, each with its TOML. If the key has no list yet, a single
    /// element is written without brackets.
    fn set_list(&mut self, path: &[&str], elements: &[(String, String)]) -> Result<(), EditError> {
        if let Some(array) = self.array(path) {
            return list::update(array, elements).map_err(EditError::NotAValue);
        }
        match elements {
            [(_, one)] => self.set_in_table(path, one),
            several => {
                let values: Vec<&str> = several.iter().map(|(_, value)| value.as_str()).collect();
                self.set_in_table(path, &format!("[{}]", values.join(", ")))
            }
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

    /// Replaces the entries of a map. `text`: lines `name = value`. `to_toml` converts a value to TOML.
    fn set_map(&mut self, path: &[&str], text: &str, to_toml: &dyn Fn(&str) -> String) -> Result<(), EditError> {
        let mut entries = Vec::new();
        let mut names = HashSet::new();
        for line in lines(text) {
            let (name, value) = map_entry(line).ok_or_else(|| EditError::NotAnEntry(line.to_owned()))?;
            if !names.insert(name) {
                return Err(EditError::Repeated(name.to_owned()));
            }
            // `shown` writes a table as TOML. A placeholder such as `{host}` is not TOML, so it is quoted.
            let is_table = value.starts_with('{') && super::is_value(value);
            entries.push((name, if is_table { value.to_owned() } else { to_toml(value) }));
        }
        let Some(table) = self.table(path) else {
            let mut inline = InlineTable::new();
            for (name, value) in &entries {
                inline.insert(*name, value.parse().map_err(|_| EditError::NotAValue(value.clone()))?);
            }
            return self.set_in_table(path, &inline.to_string());
        };
        let mut abandoned: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
        abandoned.retain(|name| entries.iter().all(|(wanted, _)| wanted != name));
        // Entries are removed last, so that a table of dotted keys never becomes empty and keeps its form.
        for (name, value) in entries {
            let path = [path, &[name]].concat();
            if self.value(&path).as_deref() != Some(&*value) {
                self.set(&path, &value)?;
            }
        }
        for name in &abandoned {
            self.remove(&[path, &[name.as_str()]].concat());
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
        let base = if field.is_of_server() { &[][..] } else { &["site", "x"] };
        let header = [base, parents].concat().join(".");
        let editor = Editor::new(&format!("[{header}]\n{lines}\n"));
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

/// Returns true if a table has a key that replaces the value of a field.
fn is_replaced(field: &Field, table: &dyn TableLike) -> bool {
    field.replaced_by.iter().any(|key| table.contains_key(key))
}

/// Returns the word for the origin of the certificate in a table `tls`.
fn tls_word(tls: &dyn TableLike) -> String {
    let issuer = tls.get("issuer").and_then(Item::as_str);
    match (tls.contains_key("cert"), issuer) {
        (true, _) => OWN_FILES.text.to_owned(),
        (false, issuer) => issuer.unwrap_or("auto").to_owned(),
    }
}

/// Returns true if an input can hold a text. A switch or a choice would lose a variable such as `${TLS}`.
fn is_offered(text: &str, field: &Field) -> bool {
    match field.input() {
        FieldInput::Switch => matches!(text, "true" | "false"),
        FieldInput::Choice => field.words().iter().any(|word| word.text == text),
        FieldInput::Text | FieldInput::List | FieldInput::Map => true,
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
                let line = format!("{name} = {value}");
                // `set_map` would read another name from the line of a name such as `a = b`.
                let read = map_entry(line.trim()).map(|(name, _)| name);
                if read != Some(name) || name.contains('\n') {
                    return None;
                }
                text.push_str(&line);
                text.push('\n');
            }
            Some(text)
        }
        FieldInput::List => match item.as_array() {
            None => scalar(item),
            Some(array) => {
                let elements: Option<Vec<String>> = array.iter().map(element_text).collect();
                Some(elements?.join("\n"))
            }
        },
        FieldInput::Switch | FieldInput::Choice | FieldInput::Text => scalar(item),
    }
}

/// Returns the text of the value of an item in one line; `None` if the item is not a value that
/// [`scalar_value`] can show.
fn scalar(item: &Item) -> Option<String> {
    item.as_value().and_then(scalar_value)
}

/// Splits a line of a map into name and value; `None` if it has no `=`. ` = ` takes precedence over `=`, because a name
/// such as `/a=b` may contain `=`.
fn map_entry(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" = ").or_else(|| line.split_once('='))?;
    Some((name.trim(), value.trim()))
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

/// Returns true if `is_wanted` accepts a kind, one of its alternatives, or the kind of its elements.
fn accepts(kind: &Kind, is_wanted: &dyn Fn(&Kind) -> bool) -> bool {
    is_wanted(kind)
        || match kind {
            Kind::Either(kinds) => kinds.iter().any(|kind| accepts(kind, is_wanted)),
            Kind::List(inner) | Kind::Several(inner) => accepts(inner, is_wanted),
            _ => false,
        }
}

#[cfg(test)]
mod tests;
