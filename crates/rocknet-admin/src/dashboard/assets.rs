//! Style sheet, scripts and icon of the dashboard, which are part of the program.

use aws_lc_rs::digest::{SHA256, digest};
use rocknet_handler::response::Response;
use rocknet_proto::Status;

/// Prefix of all file paths, such as `/assets/VERSION/logs.js`. The version changes with any of the files, so browsers
/// may keep each file for a year.
const FOLDER: &str = "/assets/";

/// Length of a version in bytes. A version is the beginning of a digest of all files, in hexadecimal digits.
const VERSION_BYTES: usize = 8;

/// A file of the dashboard.
pub struct Asset {
    /// Name, the last segment of its path.
    pub name: &'static str,
    media_type: &'static str,
    text: &'static str,
}

macro_rules! asset {
    ($name:literal, $media_type:expr) => {
        Asset {
            name: $name,
            media_type: $media_type,
            text: include_str!(concat!("../../assets/", $name)),
        }
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// All files.
pub const ASSETS: [Asset; 11] = [
    asset!("dashboard.css", "text/css; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
    asset!("dashboard.js", SCRIPT),
    asset!("server.js", SCRIPT),
    asset!("morph.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("websites.js", SCRIPT),
    asset!("site.js", SCRIPT),
    asset!("logs.js", SCRIPT),
    asset!("settings.js", SCRIPT),
    asset!("login.js", SCRIPT),
];

/// Returns the path of the folder with the files of this version, without a slash at the end.
pub fn folder() -> String {
    let all: String = ASSETS.iter().flat_map(|asset| [asset.name, asset.text]).collect();
    let digest = digest(&SHA256, all.as_bytes());
    let version: String = digest.as_ref()[..VERSION_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{FOLDER}{version}")
}

/// Returns the file with this path, if there is one. The path may contain another version, because a page may be
/// older than the server.
pub fn find(path: &str) -> Option<&'static Asset> {
    let (_, name) = path.strip_prefix(FOLDER)?.split_once('/')?;
    ASSETS.iter().find(|asset| asset.name == name)
}

impl Asset {
    /// Returns the response to a request for a path of the file. `folder`: the folder of this version.
    pub fn response(&self, path: &str, folder: &str) -> Response {
        let is_current = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let cache = if is_current {
            "private, max-age=31536000, immutable"
        } else {
            "no-store"
        };
        Response::new(Status::OK)
            .with("Content-Type", self.media_type)
            .with("Cache-Control", cache)
            .with("X-Content-Type-Options", "nosniff")
            .with("Cross-Origin-Resource-Policy", "same-origin")
            .body(self.text)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Maximum size in bytes of all files and page templates, each compressed with gzip.
    const MAX_COMPRESSED: usize = 40 * 1024;

    fn compressed(text: &str) -> usize {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap().len()
    }

    #[test]
    fn all_files_and_pages_together_are_small() {
        let files: usize = ASSETS.iter().map(|asset| compressed(asset.text)).sum();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
        let mut templates = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            templates += compressed(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
        }
        // Fails if no files or no templates were found.
        assert!(files > 1_000 && templates > 1_000);
        assert!(files + templates <= MAX_COMPRESSED, "{files} + {templates}");
    }

    #[test]
    fn files_have_paths_with_a_version() {
        let path = format!("{}/dashboard.js", folder());
        assert_eq!(find(&path).unwrap().name, "dashboard.js");
        let response = |path: &str| find(path).unwrap().response(path, &folder());
        let cache = |path: &str| response(path).fields.value("Cache-Control").unwrap().to_owned();
        assert!(cache(&path).contains("immutable"));
        assert_eq!(cache("/assets/0000/dashboard.js"), "no-store");
        for path in [
            "/assets/",
            "/assets/dashboard.js",
            "/assets/0/",
            "/assets/0/../Cargo.toml",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn scripts_create_no_markup_from_text() {
        for asset in &ASSETS {
            for sink in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ] {
                assert!(!asset.text.contains(sink), "{}: {sink}", asset.name);
            }
        }
    }
}
