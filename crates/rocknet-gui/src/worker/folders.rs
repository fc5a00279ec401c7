//! Folders of websites: their contents, start pages, and development servers that run beside them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::home::data_folder;
use crate::job::{Inspection, Trouble};
use crate::words::{Language, fill};

/// Maximum number of entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Ports that development servers use by default: Node, Vite, Angular, Flask, Django and PHP, Astro, Hugo, Jekyll, a
/// second server of Node, and Jupyter.
const DEVELOPMENT_PORTS: [u16; 10] = [3000, 5173, 4200, 5000, 8000, 4321, 1313, 4000, 3001, 8888];

/// Finds out what kind of website a folder contains.
pub fn inspect(folder: &Path) -> Inspection {
    let mut inspection = Inspection {
        exists: folder.is_absolute() && folder.is_dir(),
        is_file: folder.is_absolute() && folder.is_file(),
        ..Inspection::default()
    };
    let Ok(entries) = folder.read_dir() else {
        return inspection;
    };
    inspection.readable = inspection.exists;
    let mut has_artisan = false;
    for entry in entries.flatten().take(MAX_ENTRIES) {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        match &*name {
            "index.html" | "index.htm" => inspection.has_index_html = true,
            "wp-login.php" | "wp-config.php" | "wp-config-sample.php" => inspection.is_wordpress = true,
            "artisan" => has_artisan = true,
            _ => {}
        }
        inspection.has_php |= name.ends_with(".php");
    }
    inspection.is_laravel = has_artisan && folder.join("public/index.php").is_file();
    inspection
}

/// Returns the addresses of development servers. `own`: addresses of the server itself. `listening`: ports of this
/// computer at which programs listen, each with the address that leads to the program.
pub fn development_servers(own: &[String], listening: &BTreeMap<u16, IpAddr>) -> Vec<String> {
    let is_own = |port: u16| {
        let ends = [format!(":{port}"), format!(":{port}/")];
        own.iter().any(|address| ends.iter().any(|end| address.ends_with(end)))
    };
    let ports = DEVELOPMENT_PORTS.into_iter().filter(|port| !is_own(*port));
    let addresses = ports.filter_map(|port| Some(SocketAddr::new(*listening.get(&port)?, port)));
    addresses.map(|address| format!("http://{address}")).collect()
}

/// Writes a start page in a language into a folder that has none.
///
/// # Errors
///
/// Returns a message if the file exists or cannot be written.
pub fn create_start_page(folder: &Path, language: Language) -> Result<(), Trouble> {
    let path = folder.join("index.html");
    let written = File::options().write(true).create_new(true).open(&path);
    let title = folder.file_name().map_or(language.words().website.to_owned(), |name| {
        name.to_string_lossy().into_owned()
    });
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let text = fill(language.words().start_page_text, &["<code>index.html</code>"]);
    written
        .and_then(|mut file| file.write_all(page(&title, &text, language).as_bytes()))
        .map_err(|error| Trouble::of(&path, &error))
}

/// Creates the folder of the first page in a language, and returns it.
///
/// # Errors
///
/// Fails without a home folder, or if the folder cannot be written.
pub fn first_page(language: Language) -> io::Result<PathBuf> {
    let folder = data_folder().ok_or(io::ErrorKind::NotFound)?.join("rocknet/first-page");
    fs::create_dir_all(&folder)?;
    let file = folder.join("index.html");
    if !file.exists() {
        fs::write(file, page("It works", language.words().first_page_text, language))?;
    }
    Ok(folder)
}

fn page(title: &str, text: &str, language: Language) -> String {
    format!(
        "<!doctype html>\n<html lang=\"{code}\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>\n:root {{ color-scheme: light dark }}\nbody {{ \
         font: 1.1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 20vh auto; padding: 0 1rem; text-align: \
         center }}\n</style>\n<h1>{title}</h1>\n<p>{text}</p>\n",
        code = language.code()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn development_servers_are_those_at_known_ports() {
        let v4 = IpAddr::from([127, 0, 0, 1]);
        let v6 = IpAddr::from(std::net::Ipv6Addr::LOCALHOST);
        let listening = BTreeMap::from([(3000, v4), (5173, v6), (8000, v4), (5432, v4)]);
        let own = ["http://127.0.0.1:8000/".to_owned()];
        assert_eq!(
            development_servers(&own, &listening),
            ["http://127.0.0.1:3000", "http://[::1]:5173"]
        );
    }

    #[test]
    fn kinds_are_recognised_by_their_files() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert!(!inspect(&root.join("missing")).exists);
        assert!(!inspect(Path::new("relative")).exists);
        fs::write(root.join("a.html"), "").unwrap();
        let file = inspect(&root.join("a.html"));
        assert!(file.is_file && !file.exists);
        fs::remove_file(root.join("a.html")).unwrap();
        let empty = inspect(root);
        assert!(empty.exists && empty.readable && !empty.has_php && !empty.has_index_html);
        create_start_page(root, Language::German).unwrap();
        let page = fs::read_to_string(root.join("index.html")).unwrap();
        assert!(
            page.contains("<html lang=\"de\">") && page.contains("Diese Seite ist <code>index.html</code>"),
            "{page}"
        );
        assert!(inspect(root).has_index_html);
        assert!(create_start_page(root, Language::English).is_err());
        fs::write(root.join("Index.PHP"), "").unwrap();
        assert!(inspect(root).has_php);
        fs::write(root.join("artisan"), "").unwrap();
        assert!(!inspect(root).is_laravel);
        fs::create_dir(root.join("public")).unwrap();
        fs::write(root.join("public/index.php"), "").unwrap();
        assert!(inspect(root).is_laravel);
        fs::write(root.join("wp-config-sample.php"), "").unwrap();
        assert!(inspect(root).is_wordpress);
    }
}
