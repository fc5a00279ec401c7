//! Tests of files that a configuration includes.

use std::path::Path;

use rocknet_config::environment::MemoryEnvironment;
use rocknet_import::{Import, Language, NoteKind, import_file};

/// Returns an environment with these files.
fn files(files: &[(&str, &str)]) -> MemoryEnvironment {
    MemoryEnvironment {
        files: files
            .iter()
            .map(|(path, text)| (path.into(), (*text).to_owned()))
            .collect(),
        ..MemoryEnvironment::default()
    }
}

fn translated(language: Language, file: &str, environment: &MemoryEnvironment) -> Import {
    import_file(language, Path::new(file), environment).unwrap()
}

/// Returns the file, line and kind of the note whose message or directive contains a text.
fn note<'a>(import: &'a Import, text: &str) -> (&'a str, usize, NoteKind) {
    let is_wanted = |note: &&rocknet_import::Note| note.message.contains(text) || note.directive.contains(text);
    let found = import.notes.iter().find(is_wanted);
    let found = found.unwrap_or_else(|| panic!("{text}: {:#?}", import.notes));
    (&found.file, found.line, found.kind)
}

#[test]
fn nginx_reads_patterns_below_the_folder_of_its_main_file() {
    let environment = files(&[
        (
            "/etc/nginx/nginx.conf",
            "user www-data;\nhttp {\n  include mime.types;\n  include conf.d/*.conf;\n  include sites-enabled/*;\n}\n",
        ),
        ("/etc/nginx/conf.d/.keep", ""),
        (
            "/etc/nginx/sites-enabled/a",
            "server {\n  server_name a.test;\n  root /srv/a;\n  include snippets/staff.conf;\n}\n",
        ),
        (
            "/etc/nginx/sites-enabled/b",
            "server {\n  server_name b.test;\n  root /srv/b;\n\n  js_access a.b;\n  include snippets/none.conf;\n}\n",
        ),
        ("/etc/nginx/snippets/staff.conf", "allow 10.0.0.0/8;\ndeny all;\n"),
    ]);
    let import = translated(Language::Nginx, "/etc/nginx/nginx.conf", &environment);
    assert!(
        import
            .toml
            .contains("[site.\"a.test\"]\ntls = \"off\"\nroot = \"/srv/a\"\nallow = \"10.0.0.0/8\"\n"),
        "{}",
        import.toml
    );
    assert!(
        import.toml.contains("root = \"/srv/b\"\ndeny = \"all\"\n"),
        "{}",
        import.toml
    );
    let b = "/etc/nginx/sites-enabled/b";
    assert_eq!(note(&import, "js_access"), (b, 5, NoteKind::NotTranslated));
    assert!(
        import
            .toml
            .contains(&format!("# not translated: {b}:5: js_access a.b: ")),
        "{}",
        import.toml
    );
    assert_eq!(
        note(&import, "conf.d"),
        ("/etc/nginx/nginx.conf", 4, NoteKind::NotNeeded)
    );
    assert_eq!(note(&import, "none.conf"), (b, 6, NoteKind::NotTranslated));
    assert_eq!(import.notes.iter().filter(|note| note.weakens_access()).count(), 1);
    // A file of a site alone has the same folder.
    let import = translated(Language::Nginx, "/etc/nginx/sites-enabled/a", &environment);
    assert!(import.toml.contains("allow = \"10.0.0.0/8\""), "{}", import.toml);
}

#[test]
fn apache_reads_files_folders_and_optional_files() {
    let environment = files(&[
        (
            "/etc/httpd/conf/httpd.conf",
            "ServerRoot /etc/httpd\nDefine SITES sites\nInclude ${SITES}\nIncludeOptional conf.d/*.conf\nInclude /x.conf\n",
        ),
        ("/etc/httpd/conf.d/README", ""),
        (
            "/etc/httpd/sites/a.conf",
            "<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv/a\nInclude common.inc\n</VirtualHost>\n",
        ),
        (
            "/etc/httpd/common.inc",
            "<Location /admin/>\nRequire ip 10.0.0.0/8\n</Location>\n",
        ),
    ]);
    let main = "/etc/httpd/conf/httpd.conf";
    let import = translated(Language::Apache, main, &environment);
    let route = "[site.\"a.test\".route.\"/admin/*\"]\nallow = \"10.0.0.0/8\"\n";
    assert!(import.toml.contains(route), "{}", import.toml);
    assert_eq!(note(&import, "conf.d"), (main, 4, NoteKind::NotNeeded));
    assert_eq!(note(&import, "/x.conf"), (main, 5, NoteKind::NotTranslated));
}

#[test]
fn apache_reads_files_of_all_folders_in_a_folder() {
    let (main, deep) = ("/etc/httpd/httpd.conf", format!("/etc/httpd/sites{}", "/x".repeat(19)));
    let site = "<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv/a\n</VirtualHost>\n";
    let environment = files(&[
        (main, "Include sites\n"),
        (&format!("{deep}/b.conf"), site),
        ("/etc/httpd/sites/a/b/c/d.conf", &site.replace("a.test", "d.test")),
    ]);
    let import = translated(Language::Apache, main, &environment);
    for name in ["a.test", "d.test"] {
        assert!(import.toml.contains(&format!("[site.\"{name}\"]")), "{}", import.toml);
    }
}

#[test]
fn caddy_reads_files_relative_to_each_file_with_arguments() {
    let environment = files(&[
        (
            "/etc/caddy/Caddyfile",
            "import snippets.caddy\nimport sites/*.caddy\nimport none/*.caddy\n",
        ),
        (
            "/etc/caddy/snippets.caddy",
            "(files) {\n\troot * /srv/{args[0]}\n\tfile_server\n}\n",
        ),
        (
            "/etc/caddy/sites/a.caddy",
            "a.test {\n\timport files a\n\timport parts/admin.inc /staff\n\timport missing\n}\n",
        ),
        (
            "/etc/caddy/sites/parts/admin.inc",
            "@outside {\n\tpath {args[0]}/*\n\tnot remote_ip 10.0.0.0/8\n}\nrespond @outside 403\n",
        ),
    ]);
    let import = translated(Language::Caddy, "/etc/caddy/Caddyfile", &environment);
    for text in ["root = \"/srv/a\"", "route.\"/staff/*\"]\nallow = \"10.0.0.0/8\""] {
        assert!(import.toml.contains(text), "{text}: {}", import.toml);
    }
    let kind = NoteKind::NotTranslated;
    assert_eq!(note(&import, "import missing"), ("/etc/caddy/sites/a.caddy", 4, kind));
    assert_eq!(note(&import, "none/*"), ("/etc/caddy/Caddyfile", 3, kind));
    assert_eq!(import.notes.iter().filter(|note| note.weakens_access()).count(), 2);
}

#[test]
fn cycles_depth_and_repetitions_are_bounded() {
    let environment = files(&[
        ("/n/nginx.conf", "include a.conf;\ninclude nginx.conf;\n"),
        (
            "/n/a.conf",
            "include a.conf;\nserver { server_name a.test; root /a; }\n",
        ),
    ]);
    let import = translated(Language::Nginx, "/n/nginx.conf", &environment);
    assert!(import.toml.contains("[site.\"a.test\"]"), "{}", import.toml);
    assert_eq!(
        import
            .notes
            .iter()
            .filter(|note| note.message.contains("includes itself"))
            .count(),
        2
    );

    // Each file includes the next one ten times, which would be 10⁸ servers.
    let mut all: Vec<(String, String)> = (0..9)
        .map(|at| {
            (
                format!("/n/{at}.conf"),
                format!("include {}.conf;\n", at + 1).repeat(10),
            )
        })
        .collect();
    all.push(("/n/9.conf".to_owned(), "server { listen 81; }\n".to_owned()));
    let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let import = translated(Language::Nginx, "/n/0.conf", &files(&all));
    assert!(
        import
            .notes
            .iter()
            .any(|note| note.message.contains("the depth exceeds")),
        "{:?}",
        import.notes
    );
    let all: Vec<(&str, &str)> = all[3..].to_vec();
    let import = translated(Language::Nginx, "/n/3.conf", &files(&all));
    assert!(
        import.notes.iter().any(|note| note.message.contains("directives")),
        "{:?}",
        import.notes.len()
    );
}

#[test]
fn an_error_in_an_included_file_names_it() {
    let environment = files(&[
        ("/n/nginx.conf", "\ninclude a.conf;\n"),
        ("/n/a.conf", "\n\nserver {\n"),
    ]);
    let error = import_file(Language::Nginx, Path::new("/n/nginx.conf"), &environment).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("/n/a.conf", Some(3)));
    let error = import_file(Language::Nginx, Path::new("/n/none.conf"), &environment).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("/n/none.conf", None));
}

#[test]
fn a_snippet_takes_precedence_over_a_file_of_its_name() {
    let environment = files(&[
        (
            "/etc/caddy/Caddyfile",
            "(staff) {\n\t@outside not remote_ip 10.0.0.0/8\n\trespond @outside 403\n}\na.test {\n\timport staff\n\troot * \
             /srv\n\tfile_server\n}\n",
        ),
        ("/etc/caddy/staff", "encode\n"),
    ]);
    let import = translated(Language::Caddy, "/etc/caddy/Caddyfile", &environment);
    assert!(import.toml.contains("allow = \"10.0.0.0/8\""), "{}", import.toml);
}

#[test]
fn apache_resolves_includes_in_sections_with_the_definitions_outside_of_them() {
    let environment = files(&[
        (
            "/etc/apache2/apache2.conf",
            "<IfModule a>\nServerRoot /srv/conf\n</IfModule>\nDefine PARTS parts\n<IfModule b>\nInclude \
             sites/a.conf\n</IfModule>\n",
        ),
        (
            "/srv/conf/sites/a.conf",
            "<VirtualHost *:80>\nServerName a.test\nDocumentRoot /srv/a\nInclude ${PARTS}/staff.inc\n</VirtualHost>\n",
        ),
        (
            "/srv/conf/parts/staff.inc",
            "<Location />\nRequire ip 10.0.0.0/8\n</Location>\n",
        ),
    ]);
    let import = translated(Language::Apache, "/etc/apache2/apache2.conf", &environment);
    assert!(
        import.toml.contains("allow = \"10.0.0.0/8\""),
        "{} {:?}",
        import.toml,
        import.notes
    );
}
