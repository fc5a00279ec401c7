//! Body of the fuzz target, shared with the tests that replay the seeds. It is not part of the stable interface.

use rocknet_config::environment::MemoryEnvironment;

use crate::{Language, import};

/// Translates bytes in each language. Bytes that are not UTF-8 are ignored.
pub fn translate(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        translate_text(text);
    }
}

/// Translates a text in each language, and checks that RockNet accepts each result.
///
/// # Panics
///
/// Panics if RockNet refuses a result.
pub fn translate_text(text: &str) {
    let environment = MemoryEnvironment {
        any_directory: true,
        ..MemoryEnvironment::default()
    };
    for language in [Language::Nginx, Language::Apache, Language::Caddy] {
        // A name of a file may contain a line feed, which must not end a comment.
        let Ok(translated) = import(language, "a\nb", text) else {
            continue;
        };
        let file = "/etc/rocknet/rocknet.toml".as_ref();
        if let Err(report) = rocknet_config::parse(&translated.toml, file, &environment) {
            panic!("{language:?}: {text}\n{}\n{report}", translated.toml);
        }
    }
}
