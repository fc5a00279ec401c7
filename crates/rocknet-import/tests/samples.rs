//! Golden tests. The snapshot beside each sample is its translation, followed by the notes.
//!
//! The beginning of a sample's name is its language. `INSTA_UPDATE=always` writes the snapshots again.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rocknet_config::environment::MemoryEnvironment;
use rocknet_import::{Import, Language, import};

/// Returns the samples, with language and text, sorted by name.
fn samples() -> Vec<(PathBuf, Language, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    // insta writes snapshots that are not accepted yet to `.snap.new`.
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension != "snap" && extension != "new")
    });
    paths.sort();
    let language = |path: &Path| match path.file_name().unwrap().to_str().unwrap().split('_').next().unwrap() {
        "nginx" => Language::Nginx,
        "apache" => Language::Apache,
        "caddy" => Language::Caddy,
        other => panic!("unknown language: {other}"),
    };
    paths
        .into_iter()
        .map(|path| (path.clone(), language(&path), std::fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn every_sample_matches_its_snapshot() {
    let samples = samples();
    assert!(samples.len() >= 18, "{} samples", samples.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("samples");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (path, language, text) in samples {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let translated = import(language, name(&path), &text).unwrap();
            insta::assert_snapshot!(stem, shown(&translated));
        }
    });
}

/// Returns the name of the file that a sample stands for. An `.htaccess` stands in the root of its site.
fn name(path: &Path) -> &str {
    match path.extension().unwrap().to_str().unwrap() {
        "htaccess" => "/srv/app/public/.htaccess",
        _ => path.file_name().unwrap().to_str().unwrap(),
    }
}

fn shown(translated: &Import) -> String {
    let mut text = translated.toml.clone();
    text.push_str("\n=== notes\n");
    for note in &translated.notes {
        let label = note.kind.label();
        writeln!(text, "{}: {label}: {}: {}", note.line, note.directive, note.message).unwrap();
    }
    text
}

/// Checks that the translation of each sample is a valid configuration with a site, that its only warnings are about
/// missing files, and that it is formatted already.
#[test]
fn every_translation_is_a_valid_configuration() {
    let environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    for (path, language, text) in samples() {
        let translated = import(language, name(&path), &text).unwrap();
        let loaded = rocknet_config::parse(&translated.toml, "/etc/rocknet/rocknet.toml".as_ref(), &environment);
        let loaded = loaded.unwrap_or_else(|report| panic!("{}: {report}", path.display()));
        assert!(!loaded.config.sites.is_empty(), "{}: no site", path.display());
        for finding in loaded.warnings {
            // The files that the samples name do not exist, and every path counts as a folder here.
            let is_missing = finding.message.contains("does not exist") || finding.message.contains("is a folder");
            assert!(
                is_missing,
                "{}: {}: {:?}",
                path.display(),
                finding.message,
                finding.help
            );
        }
        assert_eq!(rocknet_config::format(&translated.toml).as_ref(), Ok(&translated.toml));
    }
}

#[test]
fn a_default_server_with_a_name_is_noted() {
    for directives in [
        "listen 80 default_server; server_name a.test;",
        "server_name a.test; listen 80 default_server;",
    ] {
        let text = format!("server {{ {directives} root /srv; }}\n");
        let translated = import(Language::Nginx, "site.conf", &text).unwrap();
        let is_noted = |note: &rocknet_import::Note| note.message.contains("only [site.default] serves");
        assert!(translated.notes.iter().any(is_noted), "{}", translated.toml);
    }
}
