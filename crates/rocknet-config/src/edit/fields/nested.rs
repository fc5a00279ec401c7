//! Form fields for keys inside of tables: `cache.ttl`, `auth.file` and `auth.forward`. The form also has the fields
//! `cache`, which turns the cache on or off, and `auth` for the users.

use toml_edit::{InlineTable, Item, Table, TableLike, Value};

use super::{EditError, Editor, quoted};
use crate::form::{self, OTHER_WAYS};

/// Key of the users in the long form of `auth`.
const USERS: &str = "users";

/// Returns the text that the field `cache` shows for a table. It is always `true`, because a table turns the cache on.
/// Returns `None` if the table has settings without a field, which would be lost when the cache is turned off.
pub(super) fn cache_word(cache: &dyn TableLike) -> Option<String> {
    let is_shown = cache.iter().all(|(name, _)| name == "ttl");
    is_shown.then(|| "true".to_owned())
}

impl Editor {
    /// Turns the response cache of a site on or off. An empty word selects the default.
    pub(super) fn set_cache(&mut self, site: &str, word: &str) -> Result<(), EditError> {
        let path = ["site", site, "cache"];
        match word {
            "" => {
                self.remove(&path);
                Ok(())
            }
            // A table turns the cache on.
            "true" if self.table(&path).is_some() => Ok(()),
            word => self.replace(&path, word),
        }
    }

    /// Sets the lifetime of responses that state no lifetime, which turns the response cache on. An empty text removes
    /// the lifetime, and the cache stays on.
    pub(super) fn set_lifetime(&mut self, site: &str, text: &str) -> Result<(), EditError> {
        let path = ["site", site, "cache", "ttl"];
        if !text.is_empty() {
            return self.set_in_table(&path, &quoted(text));
        }
        let was_table = self.table(&path[..3]).is_some();
        self.remove(&path);
        match self.table(&path[..3]) {
            Some(cache) if !cache.is_empty() => Ok(()),
            // `ttl` was the last key of the table, so `cache = true` replaces the table. The table is missing already
            // if it consisted of the line `cache.ttl = "10m"`, and `remove` has deleted this line from the text.
            _ if was_table => self.replace(&path[..3], "true"),
            _ => Ok(()),
        }
    }

    /// Sets the file with the users of a site, beside the users in the configuration. An empty text removes the file.
    /// If the table then has neither users nor another way of authentication, the whole table is removed, because its
    /// other settings have no effect.
    ///
    /// # Errors
    ///
    /// Fails if clients are authenticated in another way than by passwords.
    pub(super) fn set_password_file(&mut self, site: &str, file: &str) -> Result<(), EditError> {
        let path = ["site", site, "auth", "file"];
        let is_other = |auth: &dyn TableLike| OTHER_WAYS.iter().any(|key| auth.contains_key(key));
        let has_users = |auth: &dyn TableLike| {
            let users = auth.get(USERS).and_then(Item::as_table_like);
            users.is_some_and(|users| !users.is_empty())
        };
        if !file.is_empty() {
            if self.table(&path[..3]).is_some_and(is_other) {
                return Err(EditError::Excluded("auth".to_owned()));
            }
            self.lengthen_auth(site);
            return self.set_in_table(&path, &quoted(file));
        }
        if self.remove(&path)
            && self
                .table(&path[..3])
                .is_some_and(|auth| !is_other(auth) && !has_users(auth))
        {
            self.remove(&path[..3]);
        }
        Ok(())
    }

    /// Moves the users of the short form, `auth = { ann = "…" }`, into the table `users` of the long form, so that
    /// `auth` can have other keys. Entries keep their comments.
    fn lengthen_auth(&mut self, site: &str) {
        let is_long = |auth: &dyn TableLike| {
            let names = auth.iter().map(|(name, _)| name);
            auth.is_empty() || form::find("auth").is_some_and(|field| field.is_long_form(names))
        };
        let mut item = self.document.as_item_mut();
        for part in ["site", site, "auth"] {
            match item.as_table_like_mut().and_then(|table| table.get_mut(part)) {
                Some(inner) => item = inner,
                None => return,
            }
        }
        if item.as_table_like().is_none_or(is_long) {
            return;
        }
        *item = match std::mem::take(item) {
            Item::Value(Value::InlineTable(mut users)) => {
                let mut long = InlineTable::new();
                std::mem::swap(long.decor_mut(), users.decor_mut());
                // In `toml_edit`, the space before `}` belongs to the last value of a table: here, `users`.
                // `Editor::set` moves the space to the value that it adds after `users`.
                users.decor_mut().set_suffix(" ");
                long.insert(USERS, Value::InlineTable(users));
                Item::Value(Value::InlineTable(long))
            }
            Item::Table(mut users) => {
                let mut long = Table::new();
                long.set_dotted(users.is_dotted());
                // Both tables get the same position in the file. `toml_edit` then writes the header of the outer table
                // first.
                long.set_position(users.position());
                std::mem::swap(long.decor_mut(), users.decor_mut());
                long.insert(USERS, Item::Table(users));
                Item::Table(long)
            }
            other => other,
        };
    }

    /// Sets the authorization service that decides about the requests of a site. An empty text removes it with its
    /// settings, which have no effect without it.
    ///
    /// # Errors
    ///
    /// Fails if clients are authenticated in another way, such as by passwords. With `forward` beside them, the users
    /// of `auth = { ann = "…" }` would be read as keys of the long form.
    pub(super) fn set_authorization_service(&mut self, site: &str, url: &str) -> Result<(), EditError> {
        let path = ["site", site, "auth", "forward"];
        let auth = self.table(&path[..3]);
        let is_set = auth.is_some_and(|auth| auth.contains_key("forward"));
        match url {
            "" => {
                if is_set {
                    self.remove(&path[..3]);
                }
                Ok(())
            }
            _ if !is_set && auth.is_some_and(|auth| !auth.is_empty()) => Err(EditError::Excluded("auth".to_owned())),
            url => self.set_in_table(&path, &quoted(url)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldValue;
    use super::*;
    use crate::form;

    fn editor(keys: &str) -> Editor {
        Editor::new(&format!("[site.\"a.test\"]\n{keys}")).expect(keys)
    }

    /// Checks the value of a field. `expected`: the text that the field shows; `None` if it cannot show the value.
    fn shows(keys: &str, name: &str, expected: Option<&str>) {
        let value = editor(keys).field("a.test", form::find(name).expect("a field"));
        let expected = match expected {
            Some("") => FieldValue::Missing,
            Some(text) => FieldValue::Text(text.to_owned()),
            None => match &value {
                FieldValue::Other(_) => return,
                _ => panic!("{keys} {name}: {value:?}"),
            },
        };
        assert_eq!(value, expected, "{keys} {name}");
    }

    #[test]
    fn other_ways_to_authenticate_are_not_shown_as_no_users() {
        for keys in [
            "auth = { forward = \"http://127.0.0.1:9091\" }",
            "auth = { forward = \"http://127.0.0.1:9091\", users = { ann = \"$1\" } }",
            "auth = { oidc = \"https://id.test/\", client_id = \"a\" }",
            "auth = { oidc = \"https://id.test/\", users = [\"ann\"] }",
            "auth = { certificate = true }",
            "auth = { signed = true }",
            "auth.signed = true",
            "[site.\"a.test\".auth]\nsigned = true",
            "[site.\"a.test\".auth]\nusers = [\"ann\"]\noidc = \"https://id.test/\"",
        ] {
            shows(keys, "auth", None);
            let mut editor = editor(keys);
            let before = editor.to_string();
            let field = form::find("auth").expect("a field");
            for text in ["", "ann = $1"] {
                assert!(editor.set_field("a.test", field, text).is_err(), "{keys}");
            }
            assert_eq!(editor.to_string(), before);
        }
        shows("auth = { realm = \"x\" }", "auth", Some(""));
        shows("auth = { file = \"x\" }", "auth", Some(""));
        shows("auth = { file = \"x\" }", "auth.file", Some("x"));
        shows("auth = false", "auth", None);
        // The text of the value names the other setting.
        let field = form::find("auth").expect("a field");
        let header = editor("[site.\"a.test\".auth]\nsigned = true\n");
        assert_eq!(
            header.field("a.test", field),
            FieldValue::Other("signed = true".to_owned())
        );
    }

    #[test]
    fn limits_other_than_rates_are_not_shown_as_no_limit() {
        shows("limit = \"10/s\"", "limit", Some("10/s"));
        shows("limit = { rate = \"10/s\", burst = 5 }", "limit", Some("10/s"));
        shows("limit = { connections = 3 }", "limit", None);
        shows("limit = { bandwidth = \"1MiB/s\" }", "limit", None);
        shows("[site.\"a.test\".limit]\nconnections = 3", "limit", None);
        shows("limit = [\"10/s\", { connections = 3 }]", "limit", None);
    }

    #[test]
    fn the_cache_is_a_switch_with_a_lifetime() {
        for (keys, switch, ttl) in [
            ("", Some(""), Some("")),
            ("cache = true", Some("true"), Some("")),
            ("cache = false", Some("false"), Some("")),
            ("cache = { ttl = \"10m\" }", Some("true"), Some("10m")),
            ("cache = {}", Some("true"), Some("")),
            ("[site.\"a.test\".cache]\nttl = \"10m\"", Some("true"), Some("10m")),
            // The switch would remove the memory.
            ("cache = { ttl = \"10m\", memory = \"1MiB\" }", None, Some("10m")),
            ("cache = { memory = \"1MiB\" }", None, Some("")),
        ] {
            shows(keys, "cache", switch);
            shows(keys, "cache.ttl", ttl);
        }
    }

    /// Sets a field, and compares the keys of the site.
    fn set(keys: &str, name: &str, text: &str, expected: &str) {
        let mut editor = editor(keys);
        let field = form::find(name).expect("a field");
        editor.set_field("a.test", field, text).expect(keys);
        let written = editor.to_string();
        let written = written.trim_start_matches("[site.\"a.test\"]\n").trim();
        assert_eq!(written, expected, "{keys} {name} {text}");
    }

    #[test]
    fn a_lifetime_turns_the_cache_on() {
        for before in ["", "cache = true", "cache = false", "cache = {}"] {
            set(before, "cache.ttl", "10m", "cache = { ttl = \"10m\" }");
        }
        let (ttl, table) = ("cache = { ttl = \"10m\" }", "[site.\"a.test\".cache]\nttl = \"10m\"");
        let more = "cache = { ttl = \"10m\", memory = \"1MiB\" }";
        for (before, name, text, expected) in [
            (more, "cache.ttl", "1h", &*more.replace("10m", "1h")),
            (more, "cache.ttl", "", "cache = { memory = \"1MiB\" }"),
            (&format!("{ttl} # kept"), "cache.ttl", "", "cache = true # kept"),
            (table, "cache.ttl", "", "cache = true"),
            // The dotted key alone makes `cache` a table. Below a comment, its line is removed with the table.
            ("cache.ttl = \"10m\"", "cache.ttl", "", "cache = true"),
            ("# c\ncache.ttl = \"10m\"", "cache.ttl", "", "cache = true\n# c"),
            (ttl, "cache", "true", ttl),
            (ttl, "cache", "false", "cache = false"),
            (table, "cache", "false", "cache = false"),
            (ttl, "cache", "", ""),
            ("", "cache", "true", "cache = true"),
        ] {
            set(before, name, text, expected);
        }
    }

    #[test]
    fn a_password_file_stands_beside_users() {
        for (keys, users, file) in [
            ("", "", ""),
            ("auth = false", "", ""),
            ("auth = { file = \"/x\" }", "", "/x"),
            ("auth = { ann = \"$1\" }", "ann = $1\n", ""),
            ("auth = { file = \"/x\", users = { ann = \"$1\" } }", "ann = $1\n", "/x"),
            ("[site.\"a.test\".auth]\nfile = \"/x\"\nrealm = \"r\"", "", "/x"),
            ("auth.file = \"/x\"", "", "/x"),
        ] {
            if keys != "auth = false" {
                shows(keys, "auth", Some(users));
            }
            shows(keys, "auth.file", Some(file));
        }
        let file = "auth = { file = \"/x\" }";
        for (before, text, after) in [
            ("", "/x", file),
            ("auth = false", "/x", file),
            (file, "/y", "auth = { file = \"/y\" }"),
            (file, "", ""),
            ("auth = { file = \"/x\", realm = \"r\" }", "", ""),
            ("auth = { file = \"/x\", users = {} }", "", ""),
            (
                "auth = { file = \"/x\", users = { ann = \"$1\" } }",
                "",
                "auth = { users = { ann = \"$1\" } }",
            ),
            (
                "auth = { ann = \"$1\" } # staff",
                "/x",
                "auth = { users = { ann = \"$1\" }, file = \"/x\" } # staff",
            ),
            ("auth = { ann = \"$1\" }", "", "auth = { ann = \"$1\" }"),
            (
                "# staff\nauth.ann = \"$1\" # boss",
                "/x",
                "# staff\nauth.users.ann = \"$1\" # boss\nauth.file = \"/x\"",
            ),
            (
                "# staff\n[site.\"a.test\".auth]\nann = \"$1\" # boss",
                "/x",
                "# staff\n[site.\"a.test\".auth]\nfile = \"/x\"\n\n[site.\"a.test\".auth.users]\nann = \"$1\" # boss",
            ),
            (
                "[site.\"a.test\".auth]\nfile = \"/x\"\n[site.\"a.test\".auth.users]\nann = \"$1\"",
                "",
                "[site.\"a.test\".auth]\n[site.\"a.test\".auth.users]\nann = \"$1\"",
            ),
            // A file without an effect can be removed.
            (
                "auth = { file = \"/x\", signed = true }",
                "",
                "auth = { signed = true }",
            ),
        ] {
            set(before, "auth.file", text, after);
        }
        set(
            file,
            "auth",
            "ann = $1",
            "auth = { file = \"/x\", users = { ann = \"$1\" } }",
        );
        let other = "auth = { signed = true }";
        let mut editor = editor(other);
        let field = form::find("auth.file").expect("a field");
        assert_eq!(
            editor.set_field("a.test", field, "/x"),
            Err(EditError::Excluded("auth".to_owned()))
        );
        assert!(editor.to_string().contains(other));
    }

    #[test]
    fn an_authorization_service_and_users_exclude_each_other() {
        let url = "http://127.0.0.1:9091";
        let forward = "auth = { forward = \"http://127.0.0.1:9091\" }";
        for before in ["", "auth = false", "auth = {}"] {
            set(before, "auth.forward", url, forward);
        }
        shows(forward, "auth.forward", Some(url));
        let more = "auth = { forward = \"http://127.0.0.1:1\", timeout = \"1s\" }";
        set(more, "auth.forward", url, &more.replace(":1\"", ":9091\""));
        // Without an authorization service, the timeout would be an error.
        set(more, "auth.forward", "", "");
        set("[site.\"a.test\".auth]\nforward = \"http://a\"", "auth.forward", "", "");
        set("auth = false", "auth.forward", "", "auth = false");
        for users in [
            "auth = { ann = \"$1\" }",
            "auth = { users = { ann = \"$1\" } }",
            "auth = { file = \"x\" }",
            "auth = { signed = true }",
        ] {
            shows(users, "auth.forward", Some(""));
            set(users, "auth.forward", "", users);
            let mut editor = editor(users);
            let field = form::find("auth.forward").expect("a field");
            assert_eq!(
                editor.set_field("a.test", field, url),
                Err(EditError::Excluded("auth".to_owned())),
                "{users}"
            );
            assert!(editor.to_string().contains(users));
        }
    }
}
