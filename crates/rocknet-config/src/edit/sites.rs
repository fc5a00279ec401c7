//! Edits of whole sites: copies and new names.

use toml_edit::{Item, Key, Table, TableLike};

use super::{EditError, Editor};

/// Keys that are left out of a copy, because two sites cannot have the same values.
const NOT_COPIED: [&str; 1] = ["aliases"];

impl Editor {
    /// Adds a copy of a site under another name, after the other sites. Its aliases are left out.
    ///
    /// # Errors
    ///
    /// Fails without a change if there is no site `from`, or if there is a site `to`.
    pub fn copy_site(&mut self, from: &str, to: &str) -> Result<(), EditError> {
        let sites = self.sites(from, to)?;
        // The call above has checked that `sites` contains `from`.
        let mut copy = sites.get(from).cloned().unwrap_or_default();
        if let Some(table) = copy.as_table_like_mut() {
            for key in NOT_COPIED {
                table.remove(key);
            }
        }
        prepare_copy(&mut copy);
        sites.insert(to, copy);
        Ok(())
    }

    /// Gives a site another name. Its tables and comments stay where they are. A site without a header of its own
    /// may move after the other sites.
    ///
    /// # Errors
    ///
    /// Fails without a change if there is no site `from`, or if there is a site `to`.
    pub fn rename_site(&mut self, from: &str, to: &str) -> Result<(), EditError> {
        let sites = self.sites(from, to)?;
        let old = sites.key(from).cloned();
        let Some(item) = sites.remove(from) else {
            return Err(EditError::NoSite(from.to_owned()));
        };
        let mut key = Key::new(to);
        if let Some(old) = old {
            // The decoration contains the comments before a site that is written as one value.
            key = key
                .with_leaf_decor(old.leaf_decor().clone())
                .with_dotted_decor(old.dotted_decor().clone());
        }
        if let Some(sites) = self.document.get_mut("site").and_then(Item::as_table_mut) {
            sites.insert_formatted(&key, item);
        } else if let (Some(sites), Ok(value)) = (
            self.document.get_mut("site").and_then(Item::as_inline_table_mut),
            item.into_value(),
        ) {
            sites.insert_formatted(&key, value);
        }
        Ok(())
    }

    /// Returns the table of the sites for an edit that copies or renames the site `from`. Fails if there is no such
    /// site, or if there is already a site `to`.
    fn sites(&mut self, from: &str, to: &str) -> Result<&mut dyn TableLike, EditError> {
        let sites = self.document.get_mut("site").and_then(Item::as_table_like_mut);
        let sites = sites.ok_or_else(|| EditError::NoSite(from.to_owned()))?;
        if !sites.get(from).is_some_and(Item::is_table_like) {
            return Err(EditError::NoSite(from.to_owned()));
        }
        if sites.contains_key(to) {
            return Err(EditError::SiteExists(to.to_owned()));
        }
        Ok(sites)
    }
}

/// Removes the positions of the tables of a copy, so that they are written after all others and not between the
/// originals. The comments before the tables are not copied.
fn prepare_copy(item: &mut Item) {
    match item {
        Item::Table(table) => prepare_table(table),
        Item::ArrayOfTables(tables) => tables.iter_mut().for_each(prepare_table),
        Item::Value(_) | Item::None => {}
    }
}

fn prepare_table(table: &mut Table) {
    // The parser bounds the depth of tables, which bounds this recursion.
    table.set_position(None);
    table.decor_mut().set_prefix("\n");
    table.iter_mut().for_each(|(_, item)| prepare_copy(item));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# one\n[site.\"a.test\"] # first\nroot = '/a' # files\naliases = [\"b.test\"]\n\n# its downloads\n\
                        [site.\"a.test\".route.\"/x/*\"]\nbrowse = true\n\n[[site.\"a.test\".rule]]\npath = \"/y\"\n\n\
                        [log]\nlevel = \"warn\"\n";

    #[test]
    fn a_copy_comes_last_and_has_no_aliases() {
        let mut editor = Editor::new(FILE).unwrap();
        editor.copy_site("a.test", "c.test").unwrap();
        let copy = "\n[site.\"c.test\"] # first\nroot = '/a' # files\n\n[site.\"c.test\".route.\"/x/*\"]\nbrowse = \
                    true\n\n[[site.\"c.test\".rule]]\npath = \"/y\"\n";
        let text = editor.to_string();
        assert!(text.contains(copy), "{text}");
        assert_eq!(text.replacen(copy, "", 1), FILE);
    }

    #[test]
    fn a_new_name_changes_nothing_else() {
        for text in [
            FILE,
            "[site]\n# mine\n\"a.test\" = { root = '/a' } # end\n\"z.test\" = { root = '/z' }\n",
            "site.\"a.test\".root = '/a' # end\n",
            "site = { \"a.test\" = { root = '/a' } }\n",
        ] {
            let mut editor = Editor::new(text).unwrap();
            editor.rename_site("a.test", "c.test").unwrap();
            let renamed = editor.to_string();
            let mut lines: Vec<_> = renamed.lines().map(str::to_owned).collect();
            let mut expected: Vec<_> = text.replace("a.test", "c.test").lines().map(str::to_owned).collect();
            // In the other texts, the site has no header of its own, so its line may move after the other sites.
            if text.starts_with('#') {
                assert_eq!(lines, expected);
            }
            lines.sort();
            expected.sort();
            assert_eq!(lines, expected, "{renamed}");
        }
    }

    #[test]
    fn names_are_checked() {
        let mut editor = Editor::new("[site.\"a.test\"]\nroot = '/a'\n[site.\"b.test\"]\nroot = '/b'\n").unwrap();
        let before = editor.to_string();
        for (from, to, expected) in [
            ("c.test", "d.test", EditError::NoSite("c.test".into())),
            ("a.test", "b.test", EditError::SiteExists("b.test".into())),
            ("a.test", "a.test", EditError::SiteExists("a.test".into())),
        ] {
            assert_eq!(editor.copy_site(from, to), Err(expected.clone()));
            assert_eq!(editor.rename_site(from, to), Err(expected));
        }
        assert_eq!(editor.to_string(), before);
        let mut empty = Editor::new("").unwrap();
        assert_eq!(empty.copy_site("a", "b"), Err(EditError::NoSite("a".into())));
    }
}
