//! Compares the tables of `docs/migrating.md` with the translation of each directive in them.
//!
//! The first column of a row has examples, each a directive in code. The last column states what the translation does:
//! `yes`, `differs` (with a note), `not needed`, `by hand` (RockNet has it, and the translation names it), or `no`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use rocknet_import::{Import, Language, NoteKind, import};

/// Maximum number of common directives of a table that RockNet does not have and does not plan. Directives under "Rare
/// directives" are not common.
const MAX_MISSING: usize = 5;

/// Common directives that are marked `no`, one by one. A directive that becomes available is removed here, and its row
/// is changed.
const MISSING: [(Language, &str); 3] = [
    (Language::Nginx, "ssi sub_filter"),
    (Language::Apache, "AuthType Substitute"),
    (Language::Caddy, "templates"),
];

/// A row of a table.
struct Row {
    line: usize,
    language: Language,
    /// Directives of the first column.
    examples: Vec<String>,
    equivalent: String,
    state: String,
    /// True under the title "Rare directives".
    is_rare: bool,
}

fn rows() -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/migrating.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut language = None;
    let mut rows = Vec::new();
    let mut is_rare = false;
    for (line, number) in page.lines().zip(1..) {
        if let Some(title) = line.strip_prefix("## ") {
            language = match title {
                "nginx" => Some(Language::Nginx),
                ".htaccess" => Some(Language::Apache),
                "Caddyfile" => Some(Language::Caddy),
                _ => None,
            };
        }
        if let Some(title) = line
            .trim_start_matches('#')
            .strip_prefix(' ')
            .filter(|_| line.starts_with("##"))
        {
            is_rare = title == "Rare directives";
        }
        let (Some(language), true) = (language, line.starts_with("| `")) else {
            continue;
        };
        let cells: Vec<String> = line
            .replace("\\|", "\u{0}")
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.replace('\u{0}', "|").trim().to_owned())
            .collect();
        let [examples, equivalent, state] = &cells[..] else {
            panic!("line {number} has {} columns", cells.len());
        };
        rows.push(Row {
            line: number,
            language,
            examples: examples.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
            equivalent: equivalent.clone(),
            state: state.clone(),
            is_rare,
        });
    }
    rows
}

/// Directives of nginx that stand outside of `server`.
const OUTSIDE: &[&str] = &[
    "client_header_timeout",
    "client_body_timeout",
    "send_timeout",
    "large_client_header_buffers",
    "client_body_temp_path",
    "set_real_ip_from",
    "map",
    "geo",
    "upstream",
    "split_clients",
    "limit_req_zone",
    "limit_conn_zone",
    "log_format",
    "proxy_cache_path",
    "user",
    "worker_processes",
    "events",
    "pid",
    "types",
    "load_module",
    "worker_rlimit_nofile",
    "stream",
    "server",
];

/// Returns a configuration with `inserted` at a place at which the directive `example` is valid.
fn configuration(language: Language, example: &str, inserted: &str) -> String {
    let name = example.split([' ', '{']).next().unwrap_or_default();
    let inserted = match language {
        Language::Nginx if inserted.is_empty() || inserted.ends_with('}') => inserted.to_owned(),
        Language::Nginx => format!("{inserted};"),
        Language::Apache | Language::Caddy => lines(inserted),
    };
    match language {
        Language::Nginx if OUTSIDE.contains(&name) => {
            format!("{inserted}\nserver {{ listen 80; server_name a.test; root /srv; }}\n")
        }
        Language::Nginx => {
            // These directives have an effect only beside a back end.
            let inner = match name {
                name if name.starts_with("proxy_") && name != "proxy_pass" => format!(
                    "location /p/ {{ proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; {inserted} }}"
                ),
                name if name.starts_with("fastcgi_") && name != "fastcgi_pass" => {
                    format!("location ~ \\.php$ {{ fastcgi_pass unix:/run/php.sock; {inserted} }}")
                }
                _ => inserted,
            };
            format!("server {{ listen 80; server_name a.test; root /srv; {inner} }}\n")
        }
        Language::Apache => format!("DirectoryIndex index.html\n{inserted}\n"),
        Language::Caddy if example.starts_with('{') => {
            format!("{inserted}\na.test {{\nroot * /srv\nfile_server\n}}\n")
        }
        Language::Caddy => format!("a.test {{\nroot * /srv\nfile_server\n{inserted}\n}}\n"),
    }
}

/// Puts each directive of a block on a line of its own, as these languages require.
fn lines(directive: &str) -> String {
    directive
        .replace("{ ", "{\n")
        .replace(" }", "\n}")
        .replace("; ", "\n")
        .replace("> ", ">\n")
        .replace(" </", "\n</")
}

fn translated(language: Language, text: &str) -> Import {
    let name = match language {
        Language::Nginx => "site.conf",
        Language::Apache => "/srv/.htaccess",
        Language::Caddy => "Caddyfile",
    };
    import(language, name, text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the configuration without comments.
fn settings(import: &Import) -> String {
    let lines = import.toml.lines().filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_tables_say_what_the_translation_does() {
    let mut wrong = String::new();
    let mut seen = BTreeMap::<String, usize>::new();
    for row in rows() {
        assert!(
            !row.examples.is_empty() && !row.equivalent.is_empty(),
            "line {}",
            row.line
        );
        for example in &row.examples {
            let with = translated(row.language, &configuration(row.language, example, example));
            let without = translated(row.language, &configuration(row.language, example, ""));
            let notes: Vec<_> = with.notes.iter().filter(|note| !without.notes.contains(note)).collect();
            let has = |kind| notes.iter().any(|note| note.kind == kind);
            let is_changed = settings(&with) != settings(&without);
            let is_right = match row.state.as_str() {
                "yes" => !has(NoteKind::NotTranslated) && !has(NoteKind::Differs) && is_changed,
                "differs" => !has(NoteKind::NotTranslated) && has(NoteKind::Differs),
                "not needed" => !has(NoteKind::NotTranslated) && !has(NoteKind::Differs) && !is_changed,
                "by hand" | "no" => has(NoteKind::NotTranslated),
                other => panic!("line {}: {other}", row.line),
            };
            if !is_right {
                let found: Vec<_> = notes
                    .iter()
                    .map(|note| format!("{}: {}: {}", note.kind.label(), note.directive, note.message))
                    .collect();
                let _ = writeln!(
                    wrong,
                    "line {}: `{example}` is not {:?}; settings change: {is_changed}; notes: {found:?}",
                    row.line, row.state
                );
            }
        }
        *seen.entry(format!("{:?} {}", row.language, row.state)).or_default() += 1;
    }
    assert!(wrong.is_empty(), "docs/migrating.md is out of date:\n{wrong}");
    for language in [Language::Nginx, Language::Apache, Language::Caddy] {
        let count = |state: &str| seen.get(&format!("{language:?} {state}")).copied().unwrap_or_default();
        // Fewer rows would mean that the page was not read.
        assert!(count("yes") > 10, "{language:?}: {} translated", count("yes"));
    }
}

/// Returns the name of the directive in an example that makes its row differ: the last one outside of blocks, or the
/// last one inside.
fn directive_of(language: Language, example: &str) -> String {
    if language == Language::Caddy {
        return example.split(' ').next().unwrap_or_default().to_owned();
    }
    let inner = example
        .rsplit("; ")
        .find(|part| part.contains(|c: char| c.is_alphabetic()))
        .unwrap_or(example);
    let inner = inner.rsplit("{ ").next().unwrap_or(inner);
    let name = inner
        .trim_start_matches('<')
        .split([' ', ';', '>', '{', '}'])
        .next()
        .unwrap_or_default();
    name.to_owned()
}

#[test]
fn few_common_directives_are_not_available() {
    let rows = rows();
    let missing = |language: Language, is_counted: &dyn Fn(&Row) -> bool| {
        let rows = rows
            .iter()
            .filter(|row| row.language == language && row.state == "no" && !row.is_rare);
        let examples = rows.filter(|row| is_counted(row)).flat_map(|row| &row.examples);
        examples
            .map(|example| directive_of(language, example))
            .collect::<BTreeSet<String>>()
    };
    for (language, expected) in MISSING {
        let names = missing(language, &|_| true).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(names, expected, "{language:?}");
        let unplanned = missing(language, &|row| !row.equivalent.starts_with("planned"));
        assert!(unplanned.len() <= MAX_MISSING, "{language:?}: {unplanned:?}");
    }
    for row in rows.iter().filter(|row| row.state == "no") {
        assert!(row.equivalent.len() > 10, "line {}: no reason", row.line);
    }
}

/// Directives that the tables must have, because most configurations use some of them.
#[test]
fn the_tables_have_the_common_directives() {
    let all = rows();
    let has = |language, name: &str| {
        all.iter().filter(|row| row.language == language).any(|row| {
            let examples = row.examples.iter();
            let mut words = examples.flat_map(|example| example.split([' ', '{', '<', '>', ';']));
            words.any(|word| word.eq_ignore_ascii_case(name))
        })
    };
    let mut missing = Vec::new();
    for (language, names) in [
        (Language::Nginx, NGINX),
        (Language::Apache, APACHE),
        (Language::Caddy, CADDY),
    ] {
        missing.extend(
            names
                .split_whitespace()
                .filter(|name| !has(language, name))
                .map(|name| format!("{language:?} {name}")),
        );
    }
    assert!(missing.is_empty(), "no row in docs/migrating.md: {missing:?}");
}

/// Directives of the modules core, proxy, fastcgi, rewrite, gzip, ssl, limit and others that packages of Debian have.
const NGINX: &str = "listen server_name root alias index autoindex location try_files error_page internal return rewrite if \
    set map geo split_clients client_max_body_size client_body_timeout client_header_timeout client_body_buffer_size \
    client_header_buffer_size large_client_header_buffers send_timeout keepalive_timeout keepalive_requests sendfile tcp_nopush \
    tcp_nodelay aio directio open_file_cache types default_type charset server_tokens etag if_modified_since disable_symlinks \
    resolver satisfy limit_except allow deny auth_basic auth_basic_user_file auth_request add_header add_trailer expires \
    access_log error_log log_format log_not_found gzip gzip_types gzip_static brotli http2 http3 ssl_certificate \
    ssl_certificate_key ssl_protocols ssl_ciphers ssl_prefer_server_ciphers ssl_session_cache ssl_session_timeout ssl_dhparam \
    ssl_stapling ssl_client_certificate ssl_verify_client ssl_reject_handshake ssl_early_data proxy_pass proxy_set_header \
    proxy_http_version proxy_redirect proxy_cookie_path proxy_cookie_domain proxy_read_timeout proxy_connect_timeout \
    proxy_send_timeout proxy_buffering proxy_buffer_size proxy_buffers proxy_request_buffering proxy_hide_header \
    proxy_pass_header proxy_intercept_errors proxy_next_upstream proxy_ssl_verify proxy_ssl_server_name \
    proxy_ssl_trusted_certificate proxy_cache proxy_cache_path upstream least_conn ip_hash hash keepalive fastcgi_pass \
    fastcgi_param fastcgi_index fastcgi_split_path_info fastcgi_read_timeout fastcgi_cache uwsgi_pass scgi_pass grpc_pass \
    limit_req limit_req_zone limit_conn limit_conn_zone limit_rate set_real_ip_from real_ip_header sub_filter ssi \
    stub_status mirror secure_link dav_methods include user worker_processes events pid stream";

/// Directives that are valid in an `.htaccess`.
const APACHE: &str = "RewriteEngine RewriteBase RewriteCond RewriteRule RewriteOptions Redirect RedirectMatch RedirectPermanent \
    DirectoryIndex DirectorySlash FallbackResource ErrorDocument Options IndexIgnore IndexOptions ReadmeName AddType ForceType \
    AddHandler SetHandler RemoveHandler AddEncoding AddCharset AddDefaultCharset AddLanguage Header RequestHeader \
    ExpiresActive ExpiresDefault ExpiresByType AddOutputFilterByType SetOutputFilter FileETag Files FilesMatch If IfModule \
    Limit LimitExcept LimitRequestBody Require RequireAll RequireAny Order Allow Deny Satisfy AuthType AuthName AuthUserFile \
    AuthGroupFile SetEnv SetEnvIf PassEnv php_value php_flag CGIPassAuth ServerSignature AcceptPathInfo Substitute \
    ModPagespeed SSLRequireSSL SSLVerifyClient";

/// Directives of the standard modules of Caddy, and common global options.
const CADDY: &str = "abort acme_server basic_auth bind encode error file_server forward_auth fs handle handle_errors \
    handle_path header import intercept invoke log log_append log_skip map method metrics php_fastcgi push redir \
    request_body request_header respond reverse_proxy rewrite root route templates tls tracing try_files uri vars email \
    auto_https admin on_demand_tls local_certs acme_ca servers grace_period";
