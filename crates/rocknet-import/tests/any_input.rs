//! Tests that no input makes a translation panic, take long, or produce a configuration that RockNet refuses.

use std::path::Path;

use proptest::prelude::*;
use rocknet_import::fuzzing::{translate, translate_text};
use rocknet_import::{Language, MAX_BYTES, import};

/// Replays the seeds of the fuzz target.
#[test]
fn fuzz_seeds_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/import");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        translate(&std::fs::read(entry.unwrap().path()).unwrap());
        seen += 1;
    }
    assert!(seen >= 6, "{seen} seeds");
}

/// Returns the samples that random edits start from.
fn samples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension != "snap"));
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn random_texts_do_not_panic(text in "\\PC{0,200}") {
        translate_text(&text);
    }

    // Replaces `cut` characters at position `at` of sample `seed` with `put`.
    #[test]
    fn random_edits_do_not_panic(seed in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
                                 cut in 0_usize..30, put in prop_oneof![
                                     "\\PC{0,6}", "[\\[\\]{}=.,\"'#\n\\\\$*/:;@<>^~!%?|() ]{0,6}"]) {
        let samples = samples();
        let mut chars: Vec<char> = seed.get(&samples).chars().collect();
        let from = at.index(chars.len() + 1);
        let to = (from + cut).min(chars.len());
        chars.splice(from..to, put.chars());
        translate_text(&chars.into_iter().collect::<String>());
    }

    // Joins random lines of random samples.
    #[test]
    fn mixed_lines_do_not_panic(lines in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..30)) {
        let samples = samples();
        let mut text = String::new();
        for (seed, at) in lines {
            let lines: Vec<&str> = seed.get(&samples).lines().collect();
            text.push_str(lines[at.index(lines.len())]);
            text.push('\n');
        }
        translate_text(&text);
    }
}

/// TOML has integers of 64 bits with a sign, so the largest numbers cannot be written.
#[test]
fn numbers_of_any_size_are_translated_or_refused() {
    for number in [
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "99999999999999999999",
    ] {
        for text in [
            format!(
                "limit_req_zone $remote_addr zone=a:1m rate=1r/s; limit_conn_zone $remote_addr zone=b:1m; server {{ \
                 server_name a.test; limit_req zone=a burst={number} delay={number}; limit_conn b {number}; limit_rate \
                 {number}g; client_max_body_size {number}; return {number}; location /a/ {{ return {number} a; expires \
                 {number}; }} location /b/ {{ rewrite ^ /x redirect; error_page {number} /e; keepalive_timeout {number}; \
                 fastcgi_read_timeout {number}y; fastcgi_pass a:{number}; }} }}"
            ),
            format!(
                "upstream a {{ server b weight={number} max_fails={number} fail_timeout={number} max_conns={number}; }} server \
                 {{ listen 80; server_name a.test; location / {{ proxy_pass http://a; proxy_connect_timeout {number}; \
                 proxy_read_timeout {number}; }} }}"
            ),
            format!(
                "DocumentRoot /srv\nRedirect {number} /a /b\nRewriteEngine On\nRewriteRule a b [R={number}]\nRewriteRule a b \
                 [S={number}]\nLimitRequestBody {number}\nExpiresActive On\nExpiresDefault A{number}\nErrorDocument {number} \
                 /e\nSetEnv rate-limit {number}\nTimeout {number}\n"
            ),
            format!(
                "a.test {{\nredir /a /b {number}\nrespond /c {number}\nrate_limit {{\nzone a {{\nkey a\nevents \
                 {number}\nwindow {number}s\n}}\n}}\nrequest_body {{\nmax_size {number}\n}}\nreverse_proxy b:1 \
                 {{\nmax_fails {number}\nfail_duration {number}s\nunhealthy_request_count {number}\n}}\n}}\n"
            ),
        ] {
            translate_text(&text);
        }
    }
}

#[test]
fn hostile_texts_are_translated_in_bounded_time() {
    let n = 50_000;
    let rows: Vec<(&str, String)> = vec![
        ("open blocks", "a {\n".repeat(n)),
        ("open sections", "<A>\n".repeat(n)),
        ("quotes", "\"".repeat(n)),
        ("backslashes", "\\".repeat(n)),
        ("one long word", "x".repeat(n)),
        (
            "parentheses",
            format!("server {{ location ~ {} {{ }} }}", "(".repeat(n)),
        ),
        (
            "alternatives",
            format!("server {{ location ~ ^/{} {{ deny all; }} }}", "(a|b)".repeat(n / 10)),
        ),
        (
            "locations",
            format!("server {{ {} }}", "location /a { deny all; }\n".repeat(n / 10)),
        ),
        (
            "refusals",
            format!(
                "server {{ {} }}",
                (0..n / 20)
                    .map(|i| format!("location ~ ^/a{i} {{ return 404; }}\n"))
                    .collect::<String>()
            ),
        ),
        (
            "redirects",
            format!(
                "server {{ {} }}",
                (0..n / 10)
                    .map(|i| format!("rewrite ^/a{i}$ /b permanent;\n"))
                    .collect::<String>()
            ),
        ),
        (
            "invalid values",
            format!(
                "server {{ {} }}",
                (0..n / 10)
                    .map(|i| format!("rewrite ^/a{i}$ //b permanent;\n"))
                    .collect::<String>()
            ),
        ),
        (
            "sites",
            (0..n / 50).map(|i| format!("s{i}.test {{\nrespond a\n}}\n")).collect(),
        ),
        (
            "snippets",
            format!(
                "(a) {{\n{}}}\nb.test {{\n{}}}\n",
                "encode\n".repeat(1000),
                "import a\n".repeat(1000)
            ),
        ),
        (
            "definitions",
            format!(
                "Define a {}\nDocumentRoot {}\n",
                "x".repeat(10_000),
                "${a}".repeat(10_000)
            ),
        ),
    ];
    for (name, text) in rows {
        let start = std::time::Instant::now();
        translate_text(&text);
        // The bound is generous, so that a busy machine does not fail the test.
        assert!(start.elapsed().as_secs() < 60, "{name}: {:?}", start.elapsed());
    }
    let error = import(Language::Nginx, "a", &"#".repeat(MAX_BYTES + 1)).unwrap_err();
    assert!(error.message.contains("4 MiB"), "{error}");
}
