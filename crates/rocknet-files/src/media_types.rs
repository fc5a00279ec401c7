//! Media types of the files of a tree: the configured types, then the built-in table.

use std::collections::{BTreeMap, HashMap};

use rocknet_handler::response::Text;
use rocknet_proto::semantics::media_type::{MediaType, is_compressible};

/// Type of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileType {
    /// Value of `Content-Type`.
    pub value: Text,
    /// True if files of this type are worth compressing.
    pub compressible: bool,
    /// True if the content of the file is compressed with gzip, so that `Content-Encoding` has to name it.
    pub is_gzip: bool,
}

/// Configured types of a tree.
#[derive(Debug, Default)]
pub struct MediaTypes {
    /// Types by extension in lower case, without a dot.
    by_extension: HashMap<Box<str>, FileType>,
    /// Type of files that neither this table nor the built-in table contains.
    unknown: Option<FileType>,
}

impl MediaTypes {
    /// Creates the table from the configured types by extension (`types`).
    pub fn new(configured: &BTreeMap<String, String>) -> MediaTypes {
        let own = |value: &String| FileType {
            compressible: is_compressible(value.as_bytes()),
            value: value.clone().into(),
            is_gzip: false,
        };
        let by_extension = configured.iter().filter(|(extension, _)| *extension != UNKNOWN);
        MediaTypes {
            by_extension: by_extension
                .map(|(extension, value)| (extension.as_str().into(), own(value)))
                .collect(),
            unknown: configured.get(UNKNOWN).map(own),
        }
    }

    /// Returns the type of a file by its path.
    pub fn of_path(&self, path: &[u8]) -> FileType {
        let known = self.by_extension(path);
        // The type of `.svgz` is that of the uncompressed picture, so browsers need `Content-Encoding` to show it.
        let ending = path.len().checked_sub(SVGZ.len()).map(|at| &path[at..]);
        if ending.is_some_and(|ending| ending.eq_ignore_ascii_case(SVGZ)) && known.value.starts_with(SVG) {
            return FileType {
                compressible: false,
                is_gzip: true,
                ..known
            };
        }
        known
    }

    fn by_extension(&self, path: &[u8]) -> FileType {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let Ok(name) = std::str::from_utf8(name) else {
            return MediaType::DEFAULT.into();
        };
        if !self.by_extension.is_empty()
            && let Some((_, extension)) = name.rsplit_once('.')
            && let Some(own) = self.by_extension.get(extension.to_ascii_lowercase().as_str())
        {
            return own.clone();
        }
        match (MediaType::of_name(name), &self.unknown) {
            (MediaType::DEFAULT, Some(unknown)) => unknown.clone(),
            (known, _) => known.into(),
        }
    }
}

impl From<MediaType> for FileType {
    fn from(known: MediaType) -> FileType {
        FileType {
            value: known.value.into(),
            compressible: known.compressible,
            is_gzip: false,
        }
    }
}

/// Key in `types` that sets the type of files whose extension is unknown.
const UNKNOWN: &str = "*";
/// File name extension of SVG pictures that are compressed with gzip.
const SVGZ: &[u8] = b".svgz";
/// Type of `.svg` and `.svgz`.
const SVG: &str = "image/svg+xml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_types_go_first() {
        let configured = [
            ("log", "text/plain; charset=utf-8"),
            ("html", "application/xhtml+xml"),
            ("*", "application/x-own"),
        ];
        let configured = configured.map(|(extension, value)| (extension.to_owned(), value.to_owned()));
        let types = MediaTypes::new(&configured.into());
        let none = MediaTypes::default();
        for (path, own, built_in) in [
            ("a/b.log", "text/plain; charset=utf-8", "text/plain; charset=utf-8"),
            ("a.LOG", "text/plain; charset=utf-8", "text/plain; charset=utf-8"),
            ("a.html", "application/xhtml+xml", "text/html; charset=utf-8"),
            ("a.css", "text/css; charset=utf-8", "text/css; charset=utf-8"),
            ("a.unknown", "application/x-own", "application/octet-stream"),
            ("log", "application/x-own", "application/octet-stream"),
            ("a.log/README", "application/x-own", "application/octet-stream"),
        ] {
            assert_eq!(types.of_path(path.as_bytes()).value, own, "{path}");
            assert_eq!(none.of_path(path.as_bytes()).value, built_in, "{path}");
        }
        assert!(types.of_path(b"a.log").compressible && !types.of_path(b"a.unknown").compressible);
    }

    #[test]
    fn compressed_pictures_name_their_coding() {
        let types = |value: &str| MediaTypes::new(&[("svgz".to_owned(), value.to_owned())].into());
        for (types, path, is_gzip) in [
            (MediaTypes::default(), "a/b.svgz", true),
            (MediaTypes::default(), "a.SVGZ", true),
            (types("image/svg+xml"), "a.svgz", true),
            (types("application/gzip"), "a.svgz", false),
            (MediaTypes::default(), "a.svg", false),
        ] {
            let found = types.of_path(path.as_bytes());
            assert_eq!(
                (found.is_gzip, found.compressible),
                (is_gzip, path == "a.svg"),
                "{path}: {found:?}"
            );
        }
    }
}
