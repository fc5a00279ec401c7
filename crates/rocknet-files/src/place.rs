//! Maps paths of a site to paths in the folder of an `alias`, and back.

use std::path::Path;

use rocknet_config::model::Alias;

/// Path of a site whose files are in the folder of an `alias`. For example, a route `/img/*` with the alias
/// `/srv/pictures` maps `/img/a.png` to `/a.png` in that folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the site that leads to the folder, such as `/img`, without a slash at its end; empty for the whole site.
    pub prefix: Box<str>,
    /// Name of the file in the folder, with a leading slash, if the place is a single path.
    file: Option<Box<str>>,
    /// Root of the site: the document root of scripts.
    pub document_root: Option<Box<Path>>,
}

impl Place {
    /// Returns the place that an alias configures.
    pub fn new(alias: &Alias) -> Place {
        Place {
            prefix: alias.path.as_str().into(),
            file: alias.file.as_ref().map(|file| format!("/{file}").into()),
            document_root: alias.document_root.as_deref().map(Box::from),
        }
    }

    /// Returns the path in the folder that a path of the site leads to: empty or with a leading slash. Returns `None`
    /// for a path outside of the place. The prefix ends at a segment, so `/img../x` is not below `/img`.
    pub fn inside<'p>(&'p self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(&*self.prefix)?;
        match &self.file {
            Some(file) => rest.is_empty().then_some(file),
            None => (rest.is_empty() || rest.starts_with('/')).then_some(rest),
        }
    }

    /// Returns the path of the site for a path in the folder, which is empty or has a leading slash.
    pub fn of_site(&self, inside: &str) -> String {
        match &self.file {
            Some(_) => self.prefix.to_string(),
            None => [&*self.prefix, inside].concat(),
        }
    }

    /// Returns true if the place can contain this path of the folder: for a single path, only its own file.
    pub fn contains(&self, inside: &str) -> bool {
        self.file.as_deref().is_none_or(|file| file == inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_at_segments() {
        let alias = |path: &str, file: Option<&str>| {
            Place::new(&Alias {
                path: path.to_owned(),
                file: file.map(str::to_owned),
                document_root: None,
            })
        };
        let folder = alias("/img", None);
        for (path, expected) in [
            ("/img", Some("")),
            ("/img/", Some("/")),
            ("/img/a/b", Some("/a/b")),
            ("/img..", None),
            ("/img../secret", None),
            ("/imgs/a", None),
            ("/", None),
            ("/IMG/a", None),
        ] {
            assert_eq!(folder.inside(path), expected, "{path}");
            if let Some(inside) = expected {
                assert_eq!(folder.of_site(inside), path);
            }
        }
        let file = alias("/favicon.ico", Some("icon.ico"));
        assert_eq!(file.inside("/favicon.ico"), Some("/icon.ico"));
        assert_eq!(file.inside("/favicon.ico/"), None);
        assert_eq!(file.of_site("/icon.ico"), "/favicon.ico");
        assert!(file.contains("/icon.ico") && !file.contains("/other.ico"));
        let whole = alias("", None);
        assert_eq!((whole.inside("/a"), whole.inside("/")), (Some("/a"), Some("/")));
    }
}
