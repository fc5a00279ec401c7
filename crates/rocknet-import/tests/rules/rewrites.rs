//! Tests of the paths to which each `RewriteRule` of Apache applies.

use rocknet_import::{Import, Language, Note, NoteKind, import};

use crate::support::rules;

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
    for expression in ["^/(.*)$", "^(/.*)$", "(^/a|^/secret)", "^(?:/a|/secret)"] {
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
}
