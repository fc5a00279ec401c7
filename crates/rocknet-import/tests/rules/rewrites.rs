//! Tests of the paths to which each `RewriteRule` of Apache applies.

use rocknet_import::{Import, Language, Note, NoteKind, import};

use crate::support::{has, has_note, rules, translated_apache, translated_nginx};

/// Translates an `.htaccess` with these rules.
fn translated_folder(rules: &str) -> Import {
    import(
        Language::Apache,
        "/srv/a/.htaccess",
        &format!("RewriteEngine On\n{rules}\n"),
    )
    .unwrap()
}

#[test]
fn in_a_folder_a_path_with_a_slash_excepts_nothing() {
    for expression in [
        "^/(.*)$",
        "^(/.*)$",
        "(^/a|^/secret)",
        "^(?:/a|/secret)",
        "(/secret|/a)",
        "\\/secret",
        "(^a|/secret)",
        "[^/]*/secret",
        "^(/?a|/secret)",
    ] {
        let import = translated_folder(&format!(
            "RewriteCond %{{REMOTE_ADDR}} ^10\\.\nRewriteRule {expression} - [L]\nRewriteRule ^secret - [F]"
        ));
        assert_eq!(rules(&import), ["path = '~^/secret'; respond = 403"], "{}", import.toml);
        let is_noted =
            |note: &Note| note.kind == NoteKind::NotTranslated && note.message.contains("the rules that follow apply");
        assert!(import.notes.iter().any(is_noted), "{expression}: {:?}", import.notes);
    }
    let import = translated_folder("RewriteRule ^(/?)a - [L]\nRewriteRule ^ - [F]");
    assert_eq!(
        rules(&import),
        ["unless = { path = '~^(/?)a' }; respond = 403; resolved = true"],
        "{}",
        import.toml
    );
    // The second alternative matches in Apache.
    let import = translated_folder("RewriteRule ^(/a|b)$ - [F]");
    assert_eq!(rules(&import), ["path = '/b'; respond = 403"], "{}", import.toml);
    let import = translated_folder("RewriteRule ^(a|^b)$ - [F]");
    assert_eq!(
        rules(&import),
        ["path = ['/a', '/b']; respond = 403"],
        "{}",
        import.toml
    );
}

#[test]
fn a_proxy_that_drops_the_query_gets_a_note() {
    for (end, is_noted) in [("? [P]", true), (" [P,QSD]", true), (" [P]", false)] {
        let import = translated_apache(&format!(
            "RewriteEngine On\nRewriteRule ^/app/(.*)$ http://127.0.0.1:3000/$1{end}"
        ));
        has(&import, "proxy = { to = \"http://127.0.0.1:3000\", strip = \"/app\" }");
        assert_eq!(
            has_note(&import, "query of the request is forwarded"),
            is_noted,
            "{end}"
        );
    }
}

#[test]
fn a_group_of_a_host_has_the_slash_of_the_path() {
    for (rule, expected) in [
        ("^(.*)\\.php$ /x$1", "path = '~^(.*)\\\\.php$'; rewrite = '/x{1}'"),
        // RockNet reduces slashes at the beginning of a target to one.
        ("(.*)\\.htm$ $1.html", "path = '~(.*)\\\\.htm$'; rewrite = '/{1}.html'"),
        ("^([a-z/]+)/z$ /y$1", "path = '~^([a-z/]+)/z$'; rewrite = '/y{1}'"),
        ("^/(.*)\\.php$ /x$1", "path = '~^/(.*)\\\\.php$'; rewrite = '/x{1}'"),
        ("^(.*)$ /x$1", "rewrite = '/x/{*}'"),
    ] {
        let host = format!("RewriteEngine On\nRewriteRule {rule}");
        assert_eq!(rules(&translated_apache(&host)), [expected], "{rule}");
        // `RewriteBase` of a folder has no effect on the rules of the host.
        let import = translated_apache(&format!("{host}\n<Directory /srv>\nRewriteBase /sub\n</Directory>"));
        assert_eq!(rules(&import), [expected], "{rule}");
    }
    let import = translated_folder("RewriteRule ^(.*)\\.php$ /x$1");
    assert_eq!(rules(&import), ["path = '~^/(.*)\\\\.php$'; rewrite = '/x{1}'"]);
}

#[test]
fn a_host_excepts_no_path_without_a_slash() {
    for expression in ["^open", "^(a|open)", "^$"] {
        let import = translated_apache(&format!(
            "RewriteEngine On\nRewriteRule {expression} - [L]\nRewriteRule ^ - [F]"
        ));
        assert_eq!(rules(&import), ["respond = 403"], "{expression}: {}", import.toml);
        assert!(has_note(&import, "the rules that follow apply"), "{:?}", import.notes);
    }
    let import = translated_apache("RewriteEngine On\nRewriteRule ^\\/open - [L]\nRewriteRule ^ - [F]");
    assert_eq!(
        rules(&import),
        ["unless = { path = '~^\\\\/open' }; respond = 403; resolved = true"],
        "{}",
        import.toml
    );
}

#[test]
fn one_name_is_no_prefix() {
    let import = translated_folder("RewriteRule ^[^/]+$ - [L]\nRewriteRule ^ - [F]");
    assert_eq!(
        rules(&import),
        ["unless = { path = '~^/[^/]+$' }; respond = 403; resolved = true"],
        "{}",
        import.toml
    );
    let import = translated_folder("RewriteRule ^[^/]+\\.php(/|$) - [F]");
    assert_eq!(
        rules(&import),
        ["path = '~^/[^/]+\\\\.php(/|$)'; respond = 403; resolved = true"]
    );
    for (location, expected) in [
        (
            "^/pub/[^/]+$ { allow all; }",
            "route.\"~^/pub/[^/]+$\"]\nallow = \"all\"",
        ),
        (
            "^/sites/[^/]+/private/ { deny all; }",
            "path = \"~^/sites/[^/]+/private/\"\nrespond = 403",
        ),
    ] {
        let import = translated_nginx(&format!("deny all; location ~ {location}"));
        has(&import, expected);
    }
}

#[test]
fn the_first_slash_of_a_host_may_belong_to_the_rest() {
    for (expression, expected) in [
        (
            "^/?.*/wp-admin",
            "path = '~^/?.*/wp-admin'; respond = 403; resolved = true",
        ),
        ("^/?wp-admin", "path = '~^/wp-admin'; respond = 403"),
    ] {
        let import = translated_apache(&format!("RewriteEngine On\nRewriteRule {expression} - [F]"));
        assert_eq!(rules(&import), [expected], "{expression}");
    }
}

#[test]
fn an_expression_that_may_be_empty_matches_every_path_of_a_folder() {
    for expression in [".?", "\"\"", "^/?(.*)$"] {
        let import = translated_folder(&format!(
            "RewriteCond %{{REQUEST_FILENAME}} -f\nRewriteRule {expression} - [L]\n\
             RewriteRule {expression} %{{ENV:BASE}}/app.php [L]"
        ));
        has(&import, "fallback = \"/app.php\"");
        assert_eq!(rules(&import), [""; 0], "{expression}: {}", import.toml);
    }
    // The first expression does not match the root.
    let import = translated_folder("RewriteCond %{REMOTE_ADDR} ^10\\.\nRewriteRule . - [L]\nRewriteRule .? - [F]");
    assert_eq!(rules(&import), ["respond = 403"], "{}", import.toml);
}

#[test]
fn an_exception_does_not_match_in_the_base_of_its_folder() {
    for (expression, expected) in [
        ("/css/", Some("~^/app/.+?/css/")),
        ("app", Some("~^/app/.*?app")),
        ("[a-z]+/css/", Some("~^/app/.*?[a-z]+/css/")),
        ("(?:css|P/)x", Some("~^/app/.*?(?:css|P/)x")),
        ("^css/", Some("/app/css/*")),
        // No match begins in the base.
        ("\\.css$", Some("*.css")),
        ("(?:css|js)/", Some("~(?:css|js)/")),
        ("(^css|app)/", None),
    ] {
        let import = translated_folder(&format!(
            "RewriteBase /app\nRewriteRule {expression} - [L]\nRewriteRule ^ - [F]"
        ));
        let expected = expected.map_or("respond = 403".to_owned(), |path| {
            let path = path.replace('\\', "\\\\");
            format!("unless = {{ path = '{path}' }}; respond = 403; resolved = true")
        });
        let found: Vec<String> = rules(&import);
        assert_eq!(found, [expected], "{expression}: {}", import.toml);
    }
    // The paths of the site may lack the base.
    let import = translated_folder("RewriteBase /app\nRewriteRule /css/ - [F]");
    assert_eq!(
        rules(&import),
        ["path = '~./css/'; respond = 403; resolved = true"],
        "{}",
        import.toml
    );
}

#[test]
fn an_exception_for_missing_files_is_none_for_existing_ones() {
    let front = "RewriteRule ^ /index.php [L]";
    let rewrite = |exists: &str| {
        vec![format!(
            "unless = {{ exists = {exists} }}; rewrite = '/index.php'; last = true"
        )]
    };
    for (conditions, expected, is_fallback) in [
        ("%{DOCUMENT_ROOT}%{REQUEST_URI} -f", vec![], true),
        ("%{REQUEST_FILENAME} !-f", rewrite("['folder', 'nothing']"), false),
        ("%{REQUEST_FILENAME} !-d", rewrite("['file', 'nothing']"), false),
        // Apache rewrites the paths of existing files, too.
        ("%{DOCUMENT_ROOT}%{REQUEST_URI} -d", rewrite("'folder'"), false),
    ] {
        let host = format!("RewriteEngine On\nRewriteCond {conditions}\nRewriteRule ^ - [L]\n{front}");
        let import = translated_apache(&host);
        assert_eq!(rules(&import), expected, "{conditions}\n{}", import.toml);
        assert_eq!(
            import.toml.contains("fallback = \"/index.php\""),
            is_fallback,
            "{}",
            import.toml
        );
        let is_noted = has_note(&import, "existing files are served first");
        assert_eq!(is_noted, !conditions.contains('!'), "{conditions}: {:?}", import.notes);
    }
    // The file at another path says nothing about the requested one.
    let import = translated_apache(&format!(
        "RewriteEngine On\nRewriteCond %{{DOCUMENT_ROOT}}%{{REQUEST_URI}}.html -f\nRewriteRule ^ - [L]\n{front}"
    ));
    assert!(!import.toml.contains("fallback = \"/index.php\""), "{}", import.toml);
}

#[test]
fn a_rewrite_of_links_hides_no_path_from_a_later_refusal() {
    let file = "RewriteCond %{REQUEST_FILENAME}";
    for (conditions, is_translated) in [
        (format!("{file} !-l"), false),
        (format!("{file} !-f\n{file} !-l"), false),
        // A link leads to a file, to a folder or to nothing.
        (format!("{file} !-f\n{file} !-d\n{file} !-l"), true),
        (format!("{file} !-f [OR]\n{file} !-d\n{file} !-l"), false),
        (format!("{file} !-f"), true),
    ] {
        for (later, is_refused) in [("RewriteRule ^pub/secret - [F]", true), ("", false)] {
            let import = translated_folder(&format!("{conditions}\nRewriteRule ^pub/(.*)$ files/$1 [L]\n{later}"));
            let is_rewritten = import.toml.contains("rewrite = ");
            assert_eq!(
                is_rewritten,
                is_translated || !is_refused,
                "{conditions} {later}\n{}",
                import.toml
            );
            assert_eq!(
                has_note(&import, "no exact translation"),
                !is_rewritten,
                "{:?}",
                import.notes
            );
        }
    }
}
