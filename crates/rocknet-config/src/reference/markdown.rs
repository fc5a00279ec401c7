//! Generator of `docs/configuration.md`.

use std::fmt::Write;

use crate::keys::{self, Key, Kind, Section, Word};
use crate::units;

/// Beginning of the page, before the chapters.
const HEAD: &str = r#"<!-- Generated from the table of keys in crates/rocknet-config: change it there, then run `cargo xtask docs`. -->

# Configuration

A website is two lines:

```toml
[site."example.com"]
root = "/var/www/example"
```

RockNet reads the file named by `rocknet run -c FILE`. Without `-c`, it reads `./rocknet.toml`, or
`/etc/rocknet/rocknet.toml` if that file does not exist. `rocknet check` reports every error and warning in the file,
with file, line, column and what to write instead. `rocknet fmt` formats the file, and `rocknet explain URL` shows the
effective settings of a URL with the file and line of each. A running server loads a changed file on `reload` or SIGHUP:
the whole configuration is checked, then replaced as a whole. After an error, nothing changes. Editors with JSON Schema
can complete and check keys with `docs/rocknet.schema.json`.

## General rules

**Inheritance.** A route inherits the settings of its site, and the log of a site those of `[log]`. Maps (`types`,
`headers`, `errors`, `redirects`, `push`) are merged entry by entry, and `limits` key by key; everything else is
replaced.

**Order** of tables and keys does not matter, because the most specific route or redirect takes effect. Only rules are
applied in the order of the configuration.

**Paths** on disk are relative to the folder of the file that contains them, which may be an included file.

**Variables.** In any string value, `${NAME}` stands for an environment variable and `${file:PATH}` for the content of a
file, without the newline at its end. `$${` stands for a literal `${`; any other `$` stands for itself. Expanded values
are not expanded again. Messages quote the string before expansion, so that secrets stay secret.

**Short and long forms.** If a key takes a value or a list of them, a single value needs no brackets. Some keys take a
short form or a table, as their entries state.

| value | format |
|---|---|
| duration | whole numbers with units: `"500ms"`, `"10s"`, `"5m"`, `"1h"`, `"7d"`, `"1m30s"` |
| size | `"512B"`, `"50KiB"` (steps of 1024), `"100MB"` (steps of 1000), or bytes as a plain number |
| rate | a size per second: `"500B/s"`, `"1KiB/s"`, or bytes per second as a plain number |

## Selection of the site

The site of a request is selected by the listener that received it, then by its host name.

| table | listens on | host names |
|---|---|---|
| `[site."example.com"]` | ports 80 and, with TLS, 443 (8080 and 8443 in `dev` mode), or `listen` | its name and its `aliases` |
| `[site."*.example.com"]` | the same | every name below example.com that no other site has |
| `[site.":8081"]` | port 8081 of every address | every name that no other site has there |
| `[site."10.0.0.1"]` | port 80 of that address, or `listen` | every name that no other site has there |
| `[site."10.0.0.1:8081"]` | that port of that address | every name that no other site has there |
| `[site.default]` | port 80 (8080 in `dev` mode), or `listen` | every name that no other site has there |

Two sites with the same name on the same listener are an error that names both sites. So are two sites on the
same listener that both serve every name that no other site has.
"#;

/// Returns the content of `docs/configuration.md`.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    write_section(&mut page, "The top of the file", "", &[Section::Top]);
    write_section(
        &mut page,
        "`[server]`: the process and its threads",
        "",
        &[Section::Server, Section::Http3, Section::Events, Section::Spool],
    );
    write_section(
        &mut page,
        "`[limits]`: limits of connections and requests",
        "",
        &[Section::Limits],
    );
    write_section(
        &mut page,
        "`[log]`: error log and access log",
        "",
        &[Section::Log, Section::Rotate],
    );
    write_section(&mut page, "`[cache]`: the file cache", "", &[Section::Cache]);
    write_section(
        &mut page,
        "`[admin]`: control of the running server",
        "",
        &[Section::Admin],
    );
    write_section(&mut page, "`[tracing]`: traces of requests", "", &[Section::Tracing]);
    write_section(&mut page, "`[ban]`: bans of clients", "", &[Section::Ban]);
    write_section(
        &mut page,
        "`[tls]`: encryption",
        "",
        &[Section::Tls, Section::Ca, Section::TlsDns],
    );
    let intro = "Keys marked *site and route* are also valid in a route, `[site.\"example.com\".route.\"/path/*\"]`.\n";
    write_section(
        &mut page,
        "`[site.\"example.com\"]`: a website",
        intro,
        &[
            Section::Site,
            Section::SiteTls,
            Section::Redirect,
            Section::Proxy,
            Section::Upstream,
            Section::Health,
            Section::Mirror,
            Section::Application,
            Section::Cgi,
            Section::Php,
            Section::Auth,
            Section::Certificate,
            Section::Limit,
            Section::Browse,
            Section::Zip,
            Section::Cors,
            Section::ResponseCache,
        ],
    );
    write_section(
        &mut page,
        "`[[site.\"example.com\".rule]]`: rules",
        "",
        &[Section::Rule],
    );
    page
}

/// Writes a chapter: the title, the paragraph `intro` if it is not empty, a table of the keys, and an entry for each
/// key.
fn write_section(page: &mut String, title: &str, intro: &str, sections: &[Section]) {
    let _ = write!(page, "\n## {title}\n");
    if !intro.is_empty() {
        let _ = write!(page, "\n{intro}");
    }
    let mut rows = String::new();
    let mut entries = String::new();
    for section in sections {
        // A key that several sections may contain is described in the first of them.
        for key in keys::within(*section).filter(|key| key.sections.first() == Some(section)) {
            // Top-level sections have chapters of their own.
            if matches!(key.kind, Kind::Table(_) | Kind::Tables { .. }) && *section == Section::Top {
                continue;
            }
            let name = qualified(*section, key);
            let default = match key.default_value() {
                default if default.is_empty() => default,
                default => format!("`{default}`"),
            };
            let _ = writeln!(
                rows,
                "| [`{name}`](#{}) | {default} | {} |",
                anchor(&name),
                cell(&summary(key))
            );
            entry(&mut entries, *section, key, &name);
        }
    }
    // A table with one row would only repeat the entry below it.
    if rows.lines().count() > 1 {
        let _ = write!(page, "\n| key | default | |\n|---|---|---|\n{rows}");
    }
    page.push_str(&entries);
}

/// Returns the name of a key in the reference, qualified with its section.
fn qualified(section: Section, key: &Key) -> String {
    match section {
        Section::Server => format!("server.{}", key.name),
        Section::Events => format!("server.events.{}", key.name),
        Section::Spool => format!("server.spool.{}", key.name),
        Section::Http3 => format!("http3.{}", key.name),
        Section::Limits => format!("limits.{}", key.name),
        Section::Log => format!("log.{}", key.name),
        Section::Rotate => format!("log.rotate.{}", key.name),
        Section::Cache => format!("cache.{}", key.name),
        Section::Admin => format!("admin.{}", key.name),
        Section::Tracing => format!("tracing.{}", key.name),
        Section::Ban => format!("ban.{}", key.name),
        Section::Tls | Section::SiteTls => format!("tls.{}", key.name),
        Section::Ca => format!("tls.ca.{}", key.name),
        Section::TlsDns => format!("tls.dns.{}", key.name),
        Section::Redirect => format!("redirects.….{}", key.name),
        Section::Rule => format!("rule.{}", key.name),
        Section::Proxy => format!("proxy.{}", key.name),
        Section::Upstream => format!("proxy.to.{}", key.name),
        Section::Health => format!("proxy.health.{}", key.name),
        Section::Mirror => format!("proxy.mirror.{}", key.name),
        Section::Application => format!("fastcgi.{}", key.name),
        Section::Cgi => format!("cgi.{}", key.name),
        Section::Php => format!("php.{}", key.name),
        Section::Auth => format!("auth.{}", key.name),
        Section::Certificate => format!("auth.certificate.{}", key.name),
        Section::Limit => format!("limit.{}", key.name),
        Section::Browse => format!("browse.{}", key.name),
        Section::Zip => format!("browse.zip.{}", key.name),
        Section::Cors => format!("cors.{}", key.name),
        Section::ResponseCache => format!("cache.{}", key.name),
        _ => key.name.to_owned(),
    }
}

/// Returns the anchor of a heading that is a key name: only letters, digits, `_` and `-` are kept, in lower case.
fn anchor(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-')
        .collect::<String>()
        .to_ascii_lowercase()
}

/// Returns the first sentence of the documentation of a key.
fn summary(key: &Key) -> String {
    let end = key.doc.find(". ").map_or(key.doc.len(), |at| at + 1);
    key.doc[..end].trim_end_matches('.').to_owned()
}

/// Returns a text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Writes the entry of a key. `section`: the section that the entry belongs to. `name`: the qualified name of the key.
fn entry(page: &mut String, section: Section, key: &Key, name: &str) {
    let _ = write!(page, "\n### `{name}`\n\n{}\n\n", wrapped(key.doc));
    let _ = writeln!(page, "- Takes: {}", takes(&key.kind));
    words(page, &key.kind);
    let default = key.default_value();
    if !default.is_empty() {
        let _ = writeln!(page, "- Default: `{default}`");
    }
    let names: Vec<String> = match (section, key.sections) {
        (Section::Site, sections) if sections.contains(&Section::Route) => vec!["site and route".to_owned()],
        (_, [_]) => Vec::new(),
        (_, sections) => sections.iter().map(|section| section_name(*section)).collect(),
    };
    if !names.is_empty() {
        let _ = writeln!(page, "- Valid in: {}", names.join(", "));
    }
    if !key.example.is_empty() {
        let _ = write!(page, "\n```toml\n{}\n```\n", key.example);
    }
}

/// Returns the name of a section in the reference: headers of tables have backquotes, and descriptions such as
/// "`log` of a site" have them already.
fn section_name(section: Section) -> String {
    match section.header() {
        header if header.starts_with('[') => format!("`{header}`"),
        description => description.to_owned(),
    }
}

/// Wraps a paragraph to lines of at most [`LINE_CHARS`] characters.
fn wrapped(text: &str) -> String {
    let mut page = String::with_capacity(text.len() + text.len() / 80);
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > LINE_CHARS {
            page.push('\n');
            width = 0;
        } else if width > 0 {
            page.push(' ');
            width += 1;
        }
        page.push_str(word);
        width += length;
    }
    page
}

/// Maximum number of characters in a line.
const LINE_CHARS: usize = 120;

/// Writes each word of a choice on a line of its own.
fn words(page: &mut String, kind: &Kind) {
    match kind {
        Kind::Choice(words) => {
            for Word { text, doc, later } in *words {
                let later = later
                    .map(|feature| format!(" (comes with {feature})"))
                    .unwrap_or_default();
                let _ = writeln!(page, "  - `\"{text}\"`: {doc}{later}");
            }
        }
        Kind::Either(kinds) => {
            let choices = kinds.iter().filter(|kind| matches!(kind, Kind::Choice(_)));
            choices.for_each(|kind| words(page, kind));
        }
        Kind::Several(inner) | Kind::List(inner) if holds_words(inner) => words(page, inner),
        _ => {}
    }
}

/// Returns true if a kind is a choice, or has a choice among its alternatives.
fn holds_words(kind: &Kind) -> bool {
    match kind {
        Kind::Choice(_) => true,
        Kind::Either(kinds) => kinds.iter().any(|kind| matches!(kind, Kind::Choice(_))),
        _ => false,
    }
}

/// Returns a description of the values of a kind, with their bounds.
fn takes(kind: &Kind) -> String {
    let duration = |ms: u64| units::format_duration(std::time::Duration::from_millis(ms));
    match kind {
        Kind::Boolean => "`true` or `false`".to_owned(),
        Kind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Duration { min_ms, max_ms } => format!("a duration from {} to {}", duration(*min_ms), duration(*max_ms)),
        Kind::Size { min, max } => format!(
            "a size from {} to {}",
            units::format_size(*min),
            units::format_size(*max)
        ),
        Kind::Rate { min, max } => {
            format!(
                "a rate from {} to {}/s",
                units::format_size(*min),
                units::format_size(*max)
            )
        }
        Kind::Choice(_) => "one of these words:".to_owned(),
        Kind::Text(what) => format!("a string: {what}"),
        Kind::List(Kind::Choice(_)) => "a list, each element one of the words below".to_owned(),
        Kind::Several(Kind::Choice(_)) => "one of the words below; or a list of them".to_owned(),
        Kind::List(inner) => format!("a list, each element {}", takes(inner)),
        Kind::Several(inner) => format!("{}; or a list of them", takes(inner)),
        Kind::Map { name, value } => format!("a table; names: {name}; values: {}", takes(value)),
        Kind::Table(section) => {
            let keys: Vec<_> = keys::within(*section).map(|key| format!("`{}`", key.name)).collect();
            format!("a table with {}", keys.join(", "))
        }
        Kind::Tables { name, .. } => format!("a table for each {name}"),
        Kind::Either(kinds) => {
            let parts: Vec<_> = kinds
                .iter()
                .map(|kind| match kind {
                    Kind::Choice(_) => "one of the words below".to_owned(),
                    kind => takes(kind),
                })
                .collect();
            parts.join("; or ")
        }
    }
}
