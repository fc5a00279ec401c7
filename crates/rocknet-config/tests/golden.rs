//! Golden tests. Each TOML file in `golden/` is a test case: a configuration. The snapshot beside the file is the
//! result of reading the configuration.
//!
//! A test case may contain directives: `#: file NAME` begins another file, `#: env NAME=VALUE` sets a variable, `#: dir
//! PATH` creates a folder, and `#: purpose check` reads the configuration as `rocknet check` does. The main file is
//! `/etc/rocknet/rocknet.toml`, and names of files are relative to its folder.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use rocknet_config::environment::MemoryEnvironment;
use rocknet_config::model::{Config, Http3, Route, Settings, Site};
use rocknet_config::{Finding, Loaded, Report};

/// Folder of the main file in the environment of a test case.
const FOLDER: &str = "/etc/rocknet";

#[test]
fn every_case_matches_its_snapshot() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    cases.sort();
    // A smaller number would mean that cases were lost.
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for case in cases {
            let name = case.file_stem().unwrap().to_string_lossy().into_owned();
            insta::assert_snapshot!(name, outcome(&std::fs::read_to_string(&case).unwrap()));
        }
    });
}

/// Reads a test case. Returns the text of its snapshot.
fn outcome(case: &str) -> String {
    let mut environment = MemoryEnvironment::default();
    let mut is_check = false;
    let mut file = PathBuf::from(FOLDER).join("rocknet.toml");
    environment.files.insert(file.clone(), String::new());
    for line in case.split_inclusive('\n') {
        let Some(directive) = line.strip_prefix("#: ") else {
            environment.files.entry(file.clone()).or_default().push_str(line);
            continue;
        };
        let (verb, rest) = directive.trim_end().split_once(' ').unwrap();
        match verb {
            "file" => file = Path::new(FOLDER).join(rest),
            "env" => drop(
                rest.split_once('=')
                    .map(|(k, v)| environment.variables.insert(k.into(), v.into())),
            ),
            "dir" => drop(environment.directories.insert(rest.into())),
            "purpose" => is_check = rest == "check",
            _ => panic!("unknown directive: {verb}"),
        }
        environment.files.entry(file.clone()).or_default();
    }
    let main = Path::new("rocknet.toml");
    let read = if is_check {
        rocknet_config::check
    } else {
        rocknet_config::load
    };
    match read(main, &environment) {
        Err(report) => report.to_string(),
        Ok(loaded) => accepted(&loaded),
    }
}

/// Returns the snapshot of a valid configuration: the warnings, and the parts that differ from the defaults.
fn accepted(loaded: &Loaded) -> String {
    let report = Report {
        findings: loaded.warnings.clone(),
        omitted: 0,
    };
    let mut text = String::from("accepted\n");
    if !loaded.warnings.is_empty() {
        text.push_str(&report.to_string());
    }
    let base = Config::default();
    let config = &loaded.config;
    if config.server != base.server {
        writeln!(text, "{:#?}", config.server).unwrap();
    }
    if config.limits != base.limits {
        writeln!(text, "{:#?}", config.limits).unwrap();
    }
    if config.log != base.log {
        writeln!(text, "{:#?}", config.log).unwrap();
    }
    if config.tls != base.tls {
        writeln!(text, "{:?}", config.tls).unwrap();
    }
    if config.cache != base.cache {
        writeln!(text, "{:#?}", config.cache).unwrap();
    }
    for site in &config.sites {
        write_site(&mut text, site, config);
    }
    text
}

/// Writes a site in a few lines: the settings that differ from the defaults.
fn write_site(text: &mut String, site: &Site, config: &Config) {
    let given = if site.listen_given { "" } else { " by default" };
    writeln!(
        text,
        "site {} at {}:{}",
        site.name,
        site.span.file.display(),
        site.span.line
    )
    .unwrap();
    writeln!(text, "  names {:?}", site.names).unwrap();
    writeln!(text, "  listen{given} {:?}", site.listen).unwrap();
    if !site.secure.is_empty() {
        writeln!(text, "  secure {:?}", site.secure).unwrap();
    }
    if let Some(tls) = &site.tls {
        writeln!(text, "  {tls:?}").unwrap();
        if site.http3 != Http3::default() {
            writeln!(text, "  {:?}", site.http3).unwrap();
        }
    }
    if site.access != config.log.access {
        writeln!(text, "  access {:?}", site.access).unwrap();
    }
    write_settings(text, &site.settings, &Settings::default(), "  ");
    for rule in &site.rules {
        let last = if rule.last { ", last" } else { "" };
        writeln!(text, "  rule at line {}{last}", rule.span.line).unwrap();
        writeln!(text, "    {:?}", rule.when).unwrap();
        for exception in &rule.unless {
            writeln!(text, "    unless {exception:?}").unwrap();
        }
        writeln!(text, "    {:?}", rule.action).unwrap();
    }
    for Route {
        pattern,
        settings,
        span,
    } in &site.routes
    {
        writeln!(text, "  route {pattern:?} at line {}", span.line).unwrap();
        write_settings(text, settings, &site.settings, "    ");
    }
}

/// Writes the settings that differ from `base`, and the spans of the written keys.
fn write_settings(text: &mut String, settings: &Settings, base: &Settings, indent: &str) {
    let (ours, theirs) = (format!("{settings:#?}"), format!("{base:#?}"));
    if ours == theirs {
        return;
    }
    let mut show = |name: &str, ours: String, theirs: String| {
        if ours != theirs {
            writeln!(text, "{indent}{name} {ours}").unwrap();
        }
    };
    macro_rules! each {
        ($($field:ident)*) => { $( show(
            stringify!($field), format!("{:?}", settings.$field), format!("{:?}", base.$field),
        ); )* };
    }
    each!(root alias index browse types fallback try_paths symlinks php user proxy application controller run_on isolate cache cgi internal access auth limits compress headers errors redirects push priority body_size body_memory answer_timeout);
    let spans: Vec<_> = settings
        .key_spans
        .iter()
        .map(|(key, span)| format!("{key}:{}", span.line))
        .collect();
    writeln!(text, "{indent}spans {}", spans.join(" ")).unwrap();
}

#[test]
fn findings_have_a_help_and_no_full_stop() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let environment = MemoryEnvironment {
            any_directory: true,
            ..MemoryEnvironment::default()
        };
        if let Err(report) = rocknet_config::parse(&text, Path::new("/etc/rocknet/rocknet.toml"), &environment) {
            for Finding { message, help, .. } in report.findings {
                assert!(help.is_some(), "{}: no help for: {message}", path.display());
                assert!(!message.ends_with('.'), "{}: {message}", path.display());
            }
        }
    }
}
