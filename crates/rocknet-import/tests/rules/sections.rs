//! Tests of the sections of Apache, and of directives whose effect depends on their section.

use rocknet_import::{Language, NoteKind};

use crate::support::{is_any_weakened, is_weakened, rules, translated_apache};

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
