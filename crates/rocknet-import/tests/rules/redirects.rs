//! Tests that redirects keep their status, and apply to the same paths.

use rocknet_import::NoteKind;

use crate::support::{has, rules, translated_apache, translated_nginx};

#[test]
fn redirects_to_another_host_keep_their_status() {
    for (directives, expected) in [
        ("return 302 https://b.test$request_uri;", 302),
        ("return 307 https://b.test$request_uri;", 307),
        ("return https://b.test$request_uri;", 302),
        ("return 301 https://b.test$request_uri;", 301),
        ("rewrite ^(.*)$ https://b.test$1 redirect;", 302),
        ("rewrite ^(.*)$ https://b.test$1 permanent;", 301),
        ("location / { return 302 https://b.test$request_uri; }", 302),
    ] {
        let target = format!("redirects.\"/*\" = {{ to = \"https://b.test/{{*}}\", status = {expected} }}");
        has(&translated_nginx(directives), &target);
        let tls = format!("listen 443 ssl; ssl_certificate /c.pem; ssl_certificate_key /k.pem; {directives}");
        has(&translated_nginx(&tls), &target);
    }
    // `$request_uri` contains the query, so text after it in the path has no counterpart.
    for target in ["/x$request_uri?next=$request_uri", "/x$request_uri$request_uri"] {
        let import = translated_nginx(&format!("return 302 {target};"));
        assert!(
            !import.toml.contains("/x") || import.toml.contains("# not translated"),
            "{}",
            import.toml
        );
    }
    let import = translated_nginx("location /a/ { return 302 /login?next=$request_uri&x=1; }");
    has(
        &import,
        "redirects.\"/a/*\" = { to = \"/login?next={target}&x=1\", status = 302 }",
    );
    let import = translated_nginx("location /a/ { return 302 https://b.test$request_uri; }");
    has(
        &import,
        "redirects.\"/a/*\" = { to = \"https://b.test/a/{*}\", status = 302 }",
    );
    for status in [301, 302] {
        let import = translated_nginx(&format!(
            "server_name a.test c.test; if ($host = c.test) {{ return {status} https://b.test$request_uri; }}"
        ));
        assert_eq!(
            rules(&import),
            [format!(
                "host = 'c.test'; redirect = 'https://b.test/{{*}}'; status = {status}"
            )],
            "{}",
            import.toml
        );
    }
    for (directive, expected) in [
        ("Redirect 302 / https://b.test/", 302),
        ("Redirect / https://b.test/", 302),
        ("Redirect 307 / https://b.test/", 307),
        ("RedirectPermanent / https://b.test/", 301),
    ] {
        let target = format!("redirects.\"/*\" = {{ to = \"https://b.test/{{*}}\", status = {expected} }}");
        has(&translated_apache(directive), &target);
    }
}

#[test]
fn redirects_apply_to_names_that_begin_with_the_expression() {
    let import = translated_nginx("rewrite ^/old(.*)$ /new$1 permanent;");
    has(
        &import,
        "redirects.\"~^/old(.*)$\" = { to = \"/new{1}\", status = 301 }",
    );
    let import = translated_nginx("rewrite ^/old/(.+)$ /new/$1 permanent;");
    has(
        &import,
        "redirects.\"~^/old/(.+)$\" = { to = \"/new/{1}\", status = 301 }",
    );
    let import = translated_apache("RedirectMatch 301 ^/old(.*)$ /new$1");
    has(
        &import,
        "redirects.\"~^/old(.*)$\" = { to = \"/new{1}\", status = 301 }",
    );
    let import = translated_apache("RewriteEngine On\nRewriteRule ^/old(.*)$ /new$1 [L]");
    assert_eq!(
        rules(&import),
        ["path = '~^/old(.*)$'; rewrite = '/new{1}'; last = true"]
    );
    // A captured text cannot continue a host, so that only paths with a slash after the name are redirected.
    for import in [
        translated_nginx("rewrite ^/old(.*)$ https://b.test$1 permanent;"),
        translated_apache("RedirectMatch 301 ^/old(.*)$ https://b.test$1"),
        translated_apache("RewriteEngine On\nRewriteRule ^/old(.*)$ https://b.test$1 [R=301]"),
    ] {
        has(
            &import,
            "redirects.\"/old/*\" = { to = \"https://b.test/{*}\", status = 301 }",
        );
        let mut differs = import.notes.iter().filter(|note| note.kind == NoteKind::Differs);
        assert!(
            differs.any(|note| note.directive.contains("/old(.*)")),
            "{:?}",
            import.notes
        );
    }
}
