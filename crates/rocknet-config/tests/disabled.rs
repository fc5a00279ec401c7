//! Disabled sites, and the list of the files of a configuration.

use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::{Code, Loaded, Report, files};

/// Checks a text in an environment in which only the folder `/w` exists.
fn check(text: &str) -> Result<Loaded, Report> {
    let mut environment = MemoryEnvironment::default();
    environment.directories.insert("/w".into());
    rocknet_config::check_text(text, Path::new("/r.toml"), &environment)
}

#[test]
fn a_disabled_site_is_kept_and_not_served() {
    let served = "[site.\"a.test\"]\nroot = \"/w\"\ntls = \"off\"\n";
    // The root of the disabled site is missing. The site also conflicts with the other site: its alias is the other
    // site's name, and it uses TLS on port 80, where the other site does not.
    let disabled =
        "[site.\"b.test\"]\nenabled = false\nroot = \"/missing\"\naliases = \"a.test\"\nlisten = \"https://80\"\n";
    let loaded = check(&format!("{served}{disabled}")).unwrap();
    assert_eq!(loaded.warnings, []);
    let config = loaded.config;
    let names: Vec<_> = config.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["a.test"]);
    assert_eq!(
        (config.disabled_sites.len(), config.disabled_sites[0].span.line),
        (1, 4)
    );
    assert_eq!(config.disabled_sites[0].name, "b.test");
    // If the site is enabled, the missing root and the conflicts are reported.
    let enabled = check(&format!("{served}{}", disabled.replace("false", "true"))).unwrap_err();
    assert!(enabled.errors() >= 2, "{enabled}");
}

#[test]
fn keys_and_types_of_a_disabled_site_are_checked() {
    let report = check("[site.\"b.test\"]\nenabled = false\nrot = 1\nbrowse = 3\n").unwrap_err();
    let codes: Vec<_> = report.findings.iter().map(|finding| finding.code).collect();
    assert!(
        codes.contains(&Code::UnknownKey) && codes.contains(&Code::WrongType),
        "{report}"
    );
    let report = check("[site.\"b.test\"]\nenabled = \"no\"\nroot = \"/w\"\n").unwrap_err();
    assert_eq!(report.findings[0].code, Code::WrongType, "{report}");
}

#[test]
fn a_configuration_with_disabled_sites_alone_is_a_warning() {
    let loaded = check("[site.\"b.test\"]\nenabled = false\nroot = \"/w\"\n").unwrap();
    assert_eq!(
        loaded.warnings[0].message,
        "every site is disabled, so nothing is served"
    );
}

#[test]
fn the_files_of_a_configuration_are_listed_despite_errors() {
    let mut environment = MemoryEnvironment::default();
    for (name, text) in [
        ("/e/r.toml", "include = [\"s/*.toml\", \"missing.toml\"]\nrot = 1\n"),
        ("/e/s/a.toml", "broken"),
        ("/e/s/b.toml", "include = \"c.toml\"\n"),
        ("/e/s/c.toml", ""),
        ("/e/other.toml", ""),
    ] {
        environment.files.insert(name.into(), text.into());
    }
    let found = files(Path::new("/e/r.toml"), &environment);
    let expected = ["/e/r.toml", "/e/s/a.toml", "/e/s/b.toml", "/e/s/c.toml"];
    assert_eq!(found, expected.map(Path::new));
    assert!(files(Path::new("/none.toml"), &environment).is_empty());
}
