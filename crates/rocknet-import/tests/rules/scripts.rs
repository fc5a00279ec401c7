//! Tests that no source of a script is sent where Apache runs it.

use rocknet_import::{Language, import};

use crate::support::{has, has_note, is_any_weakened, is_weakened, rules, translated_apache as translated};

/// Rule that refuses the files that RockNet does not run.
const OTHERS: &str = "exists = 'file'; unless = { path = '~\\\\.php(/|$)' }; respond = 403; resolved = true";

#[test]
fn files_that_only_apache_runs_are_refused() {
    let app = format!("path = '/app/*'; {OTHERS}");
    for (directives, expected) in [
        ("ForceType application/x-httpd-php", vec![OTHERS]),
        ("SetHandler application/x-httpd-php", vec![OTHERS]),
        (
            "<Directory /srv/app>\nForceType application/x-httpd-php\n</Directory>",
            vec![app.as_str()],
        ),
        (
            "<Directory /srv/app>\nSetHandler \"proxy:unix:/run/php.sock|fcgi://localhost\"\n</Directory>",
            vec![app.as_str()],
        ),
        (
            "<Directory /srv/app>\nAddHandler application/x-httpd-php .php .html\n</Directory>",
            vec!["path = '~^/app/.*\\\\.(html)$'; respond = 403; resolved = true"],
        ),
        (
            "<Files page>\nForceType application/x-httpd-php\n</Files>",
            vec!["path = '*/page'; unless = { path = '~\\\\.php(/|$)' }; respond = 403; resolved = true"],
        ),
        (
            "<FilesMatch \"\\.(php|inc)$\">\nSetHandler application/x-httpd-php\n</FilesMatch>",
            vec!["path = ['*.php', '*.inc']; unless = { path = '~\\\\.php(/|$)' }; respond = 403; resolved = true"],
        ),
        (
            "AddType application/x-httpd-php .php .inc .html",
            vec!["path = ['*.inc', '*.html']; respond = 403; resolved = true"],
        ),
        ("AddHandler php-script .php .phtml", vec![]),
        ("AddType application/x-httpd-php .php", vec![]),
        (
            "<FilesMatch \"\\.php$\">\nForceType application/x-httpd-php\n</FilesMatch>",
            vec![],
        ),
        (
            "<FilesMatch \".+\\.ph(?:ar|p|tml)$\">\nSetHandler application/x-httpd-php\n</FilesMatch>",
            vec![],
        ),
        ("<Files x.php>\nSetHandler application/x-httpd-php\n</Files>", vec![]),
        (
            "<Directory /srv/app>\n<FilesMatch \\.php$>\nSetHandler application/x-httpd-php\n</FilesMatch>\n</Directory>",
            vec![],
        ),
        (
            "<Directory /srv/app>\n<Files page>\nSetHandler application/x-httpd-php\n</Files>\n</Directory>",
            vec!["path = '~^/app/(?:.*/)?page$'; unless = { path = '~\\\\.php(/|$)' }; respond = 403; resolved = true"],
        ),
    ] {
        let import = translated(directives);
        has(&import, "php = ");
        assert!(!import.toml.contains("php = false"), "{directives}\n{}", import.toml);
        assert_eq!(rules(&import), expected, "{directives}\n{}", import.toml);
        assert!(!is_any_weakened(&import), "{directives}: {:?}", import.notes);
        let is_noted = has_note(&import, "the others are refused");
        assert_eq!(is_noted, !expected.is_empty(), "{directives}: {:?}", import.notes);
    }
    // The source is shown in Apache, too.
    let import = translated("AddType application/x-httpd-php-source .phps");
    assert!(!import.toml.contains("php = \"auto\""), "{}", import.toml);
}

#[test]
fn scripts_that_apache_may_run_are_not_sent() {
    for (directives, php, expected) in [
        (
            "ForceType text/plain",
            "php = false",
            vec!["path = '*.php'; respond = 403"],
        ),
        (
            "<Directory /srv/up>\nForceType text/plain\n</Directory>",
            "route.\"/up/*\"]\nphp = false",
            vec!["path = '~^/up/.*\\\\.(php)$'; respond = 403"],
        ),
        (
            "<Directory /srv/up>\nRemoveHandler .php\n</Directory>",
            "route.\"/up/*\"]\nphp = false",
            vec!["path = '~^/up/.*\\\\.(php)$'; respond = 403"],
        ),
        (
            "<Directory /srv/up>\nSetHandler none\n</Directory>",
            "route.\"/up/*\"]\nphp = false",
            vec!["path = '~^/up/.*\\\\.(php)$'; respond = 403"],
        ),
        (
            "<Directory /srv/up>\nAddHandler cgi-script .php .pl\nOptions -ExecCGI\n</Directory>",
            "route.\"/up/*\"]\nphp = false",
            vec!["path = '~^/up/.*\\\\.(php)$'; respond = 403"],
        ),
        (
            "<Files feed.php>\nForceType application/rss+xml\n</Files>",
            "",
            vec!["path = '*/feed.php'; respond = 403; resolved = true"],
        ),
        // These send the source in Apache, too.
        (
            "<Directory /srv/up>\nphp_flag engine off\n</Directory>",
            "route.\"/up/*\"]\nphp = false",
            vec![],
        ),
        (
            "<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>",
            "php = false",
            vec![],
        ),
        (
            "<Files shown.php>\nSetHandler none\n</Files>",
            "route.\"*/shown.php\"]\nphp = false",
            vec![],
        ),
        (
            "<FilesMatch \"\\.css$\">\nForceType text/css\n</FilesMatch>",
            "",
            vec![],
        ),
    ] {
        let import = translated(directives);
        has(&import, php);
        let found = rules(&import);
        let found: Vec<&str> = found
            .iter()
            .map(|rule| rule.trim_end_matches("; resolved = true"))
            .collect();
        let expected: Vec<&str> = expected
            .iter()
            .map(|rule| rule.trim_end_matches("; resolved = true"))
            .collect();
        assert_eq!(found, expected, "{directives}\n{}", import.toml);
        assert!(!is_any_weakened(&import), "{directives}: {:?}", import.notes);
    }
    // The other scripts are still run.
    let php = "<FilesMatch \\.php$>\nSetHandler application/x-httpd-php\n</FilesMatch>\n";
    for directives in [
        "<Files shown.php>\nSetHandler none\n</Files>",
        "<Files feed.php>\nForceType application/rss+xml\n</Files>",
        "<Directory /srv/up>\n<Files shown.php>\nSetHandler none\n</Files>\n</Directory>",
    ] {
        let import = translated(&format!("{php}{directives}"));
        has(&import, "\nphp = \"auto\"\n");
        assert!(
            !import.toml.contains("[site.\"a.test\".route.\"/up/*\"]"),
            "{}",
            import.toml
        );
    }
    let import = translated("<Files ~ \"feed\">\nForceType text/xml\n</Files>");
    assert!(is_weakened(&import, "ForceType"), "{:?}", import.notes);
    let import =
        translated("<Directory /srv/up>\n<Files \"*.php\">\nSetHandler none\nRequire ip 10\n</Files>\n</Directory>");
    assert!(is_weakened(&import, "Require ip 10"), "{:?}", import.notes);
}

#[test]
fn scripts_that_a_later_section_runs_are_not_sent() {
    let php = "<FilesMatch \\.php$>\nSetHandler application/x-httpd-php\n</FilesMatch>";
    let shown = "<Files shown.php>\nSetHandler none\n</Files>";
    let refused = "path = '*/shown.php'; respond = 403; resolved = true";
    let (sent, run) = ("\"*/shown.php\"]\nphp = false", "a later section runs these scripts");
    for (directives, rule, is_sent, is_run) in [
        (format!("{php}\n{shown}"), None, true, false),
        (format!("{shown}\n{php}"), None, false, true),
        (format!("{shown}\n{php}\n{shown}"), None, true, true),
        // The last directive may run the script, or another one.
        (
            format!("{shown}\n<FilesMatch \"^s.*\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>"),
            Some(refused),
            false,
            false,
        ),
        (
            format!("{shown}\n<Location />\nSetHandler application/x-httpd-php\n</Location>"),
            Some(refused),
            false,
            false,
        ),
        // Apache applies a section inside a folder after those of the host.
        (
            format!("<Directory /srv/a>\n{php}\n</Directory>\n{shown}"),
            Some(refused),
            false,
            false,
        ),
        // `none` ends the effect of `SetHandler`, not that of `AddHandler`.
        (
            format!("AddHandler application/x-httpd-php .php\n{shown}"),
            Some(refused),
            false,
            false,
        ),
        (
            format!(
                "AddHandler application/x-httpd-php .php\n{}",
                shown.replace("none", "default-handler")
            ),
            None,
            true,
            false,
        ),
        (
            format!(
                "ProxyPassMatch ^/(.*\\.php)$ fcgi://127.0.0.1:9000/srv/$1\n{}",
                shown.replace("none", "text/plain")
            ),
            Some(refused),
            false,
            false,
        ),
    ] {
        let import = translated(&directives);
        assert_eq!(import.toml.contains(sent), is_sent, "{directives}\n{}", import.toml);
        assert_eq!(has_note(&import, run), is_run, "{directives}: {:?}", import.notes);
        let is_refused = |rule: &&str| rules(&import).iter().any(|found| found == rule);
        assert_eq!(rule.filter(is_refused), rule, "{directives}\n{}", import.toml);
        assert!(!is_any_weakened(&import), "{directives}: {:?}", import.notes);
    }
}

#[test]
fn scripts_that_directives_outside_of_sections_run_are_not_sent() {
    let shown = "<FilesMatch \\.php$>\nSetHandler none\n</FilesMatch>";
    let run = "SetHandler application/x-httpd-php";
    for (global, host) in [
        ("AddHandler application/x-httpd-php .php", ""),
        ("ProxyPassMatch ^/(.*\\.php)$ fcgi://127.0.0.1:9000/srv/$1", ""),
        ("", "RewriteRule \\.php$ - [H=application/x-httpd-php]"),
        ("", "RewriteRule ^/(.*\\.php)$ fcgi://127.0.0.1:9000/srv/$1 [P]"),
        (
            "",
            "<Directory /srv>\n<If \"true\">\nSetHandler application/x-httpd-php\n</If>\n</Directory>",
        ),
        ("<If \"true\">\nSetHandler application/x-httpd-php\n</If>", ""),
    ] {
        let text = format!(
            "{global}\n<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n{host}\n{shown}\n</VirtualHost>\n"
        );
        let import = import(Language::Apache, "site.conf", &text).unwrap();
        let is_refused = |rule: &String| rule.starts_with("path = '*.php'; respond = 403");
        assert!(rules(&import).iter().any(is_refused), "{text}\n{}", import.toml);
        assert!(!import.toml.contains("php = false"), "{text}\n{}", import.toml);
        assert!(!has_note(&import, "PHP is off"), "{text}\n{:?}", import.notes);
    }
    // A handler of the whole server does not apply to files of the section.
    let text = format!("{run}\n<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv\n{shown}\n</VirtualHost>\n");
    has(&import(Language::Apache, "site.conf", &text).unwrap(), "php = false");
}

#[test]
fn sections_without_a_counterpart_that_run_scripts_are_marked() {
    let section = "<If \"%{HTTP_HOST} == 'a'\">\nSetHandler application/x-httpd-php\n</If>";
    let import = translated(section);
    assert!(is_weakened(&import, "If"), "{:?}", import.notes);
}
