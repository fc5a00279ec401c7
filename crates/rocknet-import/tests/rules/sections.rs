//! Tests of the sections of Apache, and of directives whose effect depends on their section.

use rocknet_import::{Language, NoteKind};

use crate::support::{has, has_note, is_any_weakened, is_weakened, rules, translated_apache};

#[test]
fn an_engine_that_is_off_in_a_folder_keeps_the_rules_of_the_host() {
    let host = "RewriteEngine On\nRewriteRule ^/secret - [F]\nRewriteRule ^/a$ /b\n";
    let folder = "<Directory /srv>\nRewriteEngine Off\nRewriteRule ^x - [F]\n</Directory>";
    let import = translated_apache(&format!("{host}{folder}"));
    assert_eq!(
        rules(&import),
        ["path = '~^/secret'; respond = 403", "path = '/a'; rewrite = '/b'"],
        "{}",
        import.toml
    );
    let mut about = import
        .notes
        .iter()
        .filter(|note| note.directive == "RewriteRule ^x - [F]");
    assert!(about.any(|note| note.kind == NoteKind::NotNeeded), "{:?}", import.notes);
    // The rules of the folder stay in effect, too.
    let import = translated_apache(
        "RewriteEngine Off\nRewriteRule ^/x - [F]\n<Directory /srv>\nRewriteEngine On\nRewriteRule ^secret - [F]\n</Directory>",
    );
    assert_eq!(rules(&import), ["path = '~^/secret'; respond = 403"], "{}", import.toml);
    // In a file without hosts.
    let text = "DocumentRoot /srv\nRewriteEngine On\nRewriteRule ^secret - [F]\n<Directory /srv>\nRewriteEngine \
                Off\n</Directory>\n";
    let import = rocknet_import::import(Language::Apache, "site.conf", text).unwrap();
    assert_eq!(rules(&import), ["path = '~^/secret'; respond = 403"], "{}", import.toml);
}

#[test]
fn refusals_of_sections_without_a_counterpart_are_marked() {
    for directive in [
        "Redirect 403 /",
        "Redirect gone /",
        "Redirect GONE /",
        "RedirectMatch 403 ^/x",
        "RedirectMatch gone x",
        "RewriteRule ^ - [F]",
    ] {
        for section in ["If \"%{HTTP_HOST} == 'a'\"", "IfDefine X", "Directory /elsewhere"] {
            let name = section.split(' ').next().unwrap();
            let import = translated_apache(&format!("<{section}>\n{directive}\n</{name}>"));
            assert!(is_weakened(&import, name), "{section}: {directive}: {:?}", import.notes);
        }
    }
    let import = translated_apache("<If \"%{HTTP_HOST} == 'a'\">\nRedirect 302 / https://b.test/\n</If>");
    assert!(!is_any_weakened(&import), "{:?}", import.notes);
}

#[test]
fn sections_of_versions_are_those_of_apache_2_4() {
    let import = translated_apache(
        "<Location /a>\n<IfVersion < 2.4>\nAllow from all\n</IfVersion>\n<IfVersion >= 2.4>\nRequire ip \
         10.0.0.0/8\n</IfVersion>\n</Location>",
    );
    has(&import, "allow = \"10.0.0.0/8\"");
    assert!(
        has_note(&import, "other versions than Apache 2.4") && !is_any_weakened(&import),
        "{:?}",
        import.notes
    );
    // The release is unknown, so the section may restrict access.
    for test in ["< 2.4.26", "= 2.4.57", "~ ^2\\.4\\.5"] {
        let text = format!("<IfVersion {test}>\n<Location /a>\nRequire all denied\n</Location>\n</IfVersion>");
        let import = translated_apache(&text);
        assert!(is_any_weakened(&import), "{test}: {:?}", import.notes);
    }
}

#[test]
fn sections_replace_settings_of_their_host() {
    for (host, section, expected, absent) in [
        ("Options Indexes", "Options -Indexes", "", "browse"),
        ("Options Indexes", "Options FollowSymLinks", "", "browse"),
        ("Options Indexes", "Options None", "", "browse"),
        ("Options Indexes", "Options All -Indexes", "", "browse"),
        (
            "Options Indexes",
            "Options +FollowSymLinks",
            "browse = true",
            "browse = false",
        ),
        ("Options -Indexes", "Options All", "browse = true", "browse = false"),
        (
            "Header set X-A host",
            "Header set X-A section",
            "\"X-A\" = \"section\"",
            "host",
        ),
        (
            "DirectoryIndex a.html",
            "DirectoryIndex b.html",
            "index = \"b.html\"",
            "a.html",
        ),
    ] {
        for text in [
            format!("{host}\n<Directory /srv>\n{section}\n</Directory>"),
            format!("<Directory /srv>\n{section}\n</Directory>\n{host}"),
        ] {
            let import = translated_apache(&text);
            let toml: String = import
                .toml
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| format!("{line}\n"))
                .collect();
            assert!(toml.contains(expected) && !toml.contains(absent), "{text}: {toml}");
        }
    }
    let import = translated_apache("Options Indexes\n<Directory /srv/a>\nOptions -Indexes\n</Directory>");
    has(&import, "route.\"/a/*\"]\nbrowse = false");
}

#[test]
fn an_address_or_a_user_suffices_where_apache_requires_one_of_them() {
    let (address, user) = ("Require ip 10.0.0.0/8", "Require valid-user");
    for (access, is_any, differs) in [
        (format!("{address}\n{user}"), true, false),
        (format!("<RequireAny>\n{address}\n{user}\n</RequireAny>"), true, false),
        (
            format!("<RequireAll>\nRequire all granted\n<RequireAny>\n{address}\n{user}\n</RequireAny>\n</RequireAll>"),
            true,
            false,
        ),
        (
            format!("Order deny,allow\nAllow from all\n{address}\n{user}"),
            true,
            false,
        ),
        (format!("<RequireAll>\n{address}\n{user}\n</RequireAll>"), false, false),
        // With `satisfy = "any"`, a denied client could log in.
        (
            format!(
                "<RequireAll>\n<RequireAny>\n{address}\n{user}\n</RequireAny>\nRequire not ip 10.0.0.1\n</RequireAll>"
            ),
            false,
            true,
        ),
        (
            format!("<RequireAll>\n<RequireAny>\n{address}\n{user}\n</RequireAny>\n{address}\n</RequireAll>"),
            false,
            true,
        ),
        (
            format!("<RequireAll>\n<RequireAny>\n{address}\n{user}\n</RequireAny>\n{user}\n</RequireAll>"),
            false,
            true,
        ),
        (
            format!("Order deny,allow\nDeny from all\nAllow from 10.0.0.0/8\n{user}"),
            false,
            false,
        ),
    ] {
        let import = translated_apache(&format!("<Location />\nAuthUserFile /u\n{access}\n</Location>"));
        has(&import, "allow = \"10.0.0.0/8\"\n");
        has(&import, "auth = { file = \"/u\" }\n");
        assert_eq!(
            import.toml.contains("satisfy = \"any\""),
            is_any,
            "{access}\n{}",
            import.toml
        );
        let message = "requires both an allowed address and a user";
        assert_eq!(has_note(&import, message), differs, "{access}: {:?}", import.notes);
    }
}

#[test]
fn a_section_does_not_inherit_that_one_condition_suffices() {
    let either = "AuthUserFile /u\nRequire ip 10.0.0.0/8\nRequire valid-user";
    let both = format!("<RequireAll>\n{either}\n</RequireAll>").replace("AuthUserFile /u\n", "");
    let deny = "allow = \"all\"\ndeny = \"all\"\nsatisfy = \"all\"";
    // Directives of the section for `/a/`, and the access control of its route.
    for (section, expected) in [
        (
            format!("AuthUserFile /u\n{both}"),
            "allow = \"10.0.0.0/8\"\nauth = { file = \"/u\" }\nsatisfy = \"all\"",
        ),
        ("Require all denied".to_owned(), deny),
        ("Require host b.test".to_owned(), deny),
        ("Options Indexes".to_owned(), "browse = true"),
        (
            either.to_owned(),
            "allow = \"10.0.0.0/8\"\nauth = { file = \"/u\" }\nsatisfy = \"any\"",
        ),
    ] {
        let import = translated_apache(&format!(
            "<Directory /srv>\n{either}\n</Directory>\n<Directory /srv/a>\n{section}\n</Directory>"
        ));
        let (site, route) = import.toml.split_once("route.\"/a/*\"]\n").unwrap();
        assert!(site.contains("satisfy = \"any\""), "{site}");
        assert_eq!(route.trim_end(), expected, "{section}\n{}", import.toml);
    }
    // A folder inside another one has its access control.
    let import = translated_apache(&format!(
        "<Directory /srv/a>\n{either}\n</Directory>\n<Directory /srv/a/b>\nOptions Indexes\n</Directory>"
    ));
    let (_, route) = import.toml.split_once("route.\"/a/b/*\"]\n").unwrap();
    assert!(route.contains("satisfy = \"any\""), "{}", import.toml);
}

#[test]
fn names_with_a_repeated_anchor_are_refused() {
    for (section, expected) in [
        (
            "<FilesMatch \"^(a|^b)$\">\nRequire all denied\n</FilesMatch>",
            "path = '~/(a|b)$'; respond = 403; resolved = true",
        ),
        (
            "<Directory /srv/up>\n<FilesMatch \"^(a|^b)$\">\nRequire all denied\n</FilesMatch>\n</Directory>",
            "path = '~^/up/(?:.*/)?(a|b)$'; respond = 403; resolved = true",
        ),
    ] {
        let import = translated_apache(section);
        assert_eq!(rules(&import), [expected], "{section}\n{}", import.toml);
    }
    // Only the first repetition is at the anchor.
    let import = translated_apache("<FilesMatch \"^(a|^b)+$\">\nRequire all granted\n</FilesMatch>");
    assert!(!import.toml.contains("allow"), "{}", import.toml);
}
