//! Tests of fields: the text that a form shows, and the edits of a changed text.

use super::*;
use crate::form;

const FILE: &str = "[site.\"a.test\"]\nroot = '/a' # files\nlisten = [\n    80, # clear\n    \"127.0.0.1:81\",\n]\nbrowse = \
                    true\nproxy = { to = [\"http://a\", \"http://b\"], balance = \"random\" }\ntls = { cert = \"a.pem\", min \
                    = \"1.3\" }\nlimits = { body_size = \"1GiB\" }\nfallback = false\nauth = { realm = \"x\", users = { ann \
                    = \"$1\" } }\n\n[site.\"a.test\".headers]\nX = \"1\" # kept\nY = \"2\"\n\n\
                    [site.\"a.test\".redirects]\n\"/o\" = { to = \"/n\", status = 302 }\n\"/p\" = \"/q\"\n";

/// Returns the text of a field of the site `a.test`.
fn text(editor: &Editor, name: &str) -> String {
    match editor.field("a.test", form::find(name).unwrap()) {
        FieldValue::Text(text) => text,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn fields_show_short_and_long_forms() {
    let editor = Editor::new(FILE).unwrap();
    for (name, expected) in [
        ("root", "/a"),
        ("listen", "80\n127.0.0.1:81"),
        ("browse", "true"),
        ("proxy", "http://a\nhttp://b"),
        ("tls", "files"),
        ("tls.cert", "a.pem"),
        ("limits.body_size", "1GiB"),
        ("fallback", "false"),
        ("auth", "ann = $1\n"),
        ("headers", "X = 1\nY = 2\n"),
        ("redirects", "/o = { to = \"/n\", status = 302 }\n/p = /q\n"),
    ] {
        assert_eq!(text(&editor, name), expected, "{name}");
    }
    let missing = editor.field("a.test", form::find("index").unwrap());
    assert_eq!(missing, FieldValue::Missing);
    let other = Editor::new("[site.\"a.test\"]\nproxy = { to = [{ url = \"http://a\", weight = 2 }] }\n").unwrap();
    let FieldValue::Other(value) = other.field("a.test", form::find("proxy").unwrap()) else {
        panic!("the table of a server is no text")
    };
    assert_eq!(value, "[{ url = \"http://a\", weight = 2 }]");
    // An input with fixed values would replace the variable.
    let file = "[site.\"a.test\"]\ntls = \"${TLS}\"\nenabled = \"${ON}\"\nroot = \"${ROOT}\"\n";
    let mut editor = Editor::new(file).unwrap();
    assert_eq!(text(&editor, "root"), "${ROOT}");
    for (name, value) in [("tls", "\"${TLS}\""), ("enabled", "\"${ON}\"")] {
        let field = form::find(name).unwrap();
        assert_eq!(editor.field("a.test", field), FieldValue::Other(value.to_owned()));
        assert!(editor.set_field("a.test", field, "").is_err());
    }
    let issuer = Editor::new("[site.\"a.test\"]\ntls = { issuer = \"https://ca.test/\" }\n").unwrap();
    let shown = issuer.field("a.test", form::find("tls").unwrap());
    assert_eq!(shown, FieldValue::Other("{ issuer = \"https://ca.test/\" }".to_owned()));
}

#[test]
fn an_unchanged_text_changes_nothing() {
    let mut editor = Editor::new(FILE).unwrap();
    for field in form::FIELDS {
        if let FieldValue::Text(text) = editor.field("a.test", field) {
            editor.set_field("a.test", field, &text).unwrap();
            assert_eq!(editor.to_string(), FILE, "{}", field.name());
        }
    }
}

#[test]
fn changed_texts_keep_everything_else() {
    // Field, text, and the replaced part of the file with its new text.
    for (name, text, from, to) in [
        ("root", "/b", "'/a' # files", "\"/b\" # files"),
        (
            "listen",
            "80\n127.0.0.1:81\n443",
            "    \"127.0.0.1:81\",\n",
            "    \"127.0.0.1:81\",\n    443,\n",
        ),
        ("listen", "80", "\n    \"127.0.0.1:81\",", ""),
        ("browse", "false", "true", "false"),
        ("browse", "", "browse = true\n", ""),
        ("proxy", "http://c", "[\"http://a\", \"http://b\"]", "[\"http://c\"]"),
        ("tls", "auto", "cert = \"a.pem\", ", ""),
        (
            "tls",
            "local",
            "cert = \"a.pem\", min = \"1.3\"",
            "min = \"1.3\", issuer = \"local\"",
        ),
        ("tls", "off", "{ cert = \"a.pem\", min = \"1.3\" }", "\"off\""),
        ("tls.cert", "b.pem", "a.pem", "b.pem"),
        ("limits.body_size", "1000", "\"1GiB\"", "1000"),
        ("limits.body_size", "", "limits = { body_size = \"1GiB\" }\n", ""),
        ("fallback", "/index.html", "false", "\"/index.html\""),
        ("headers", "X = 1\nZ = 3", "Y = \"2\"\n", "Z = \"3\"\n"),
        (
            "auth",
            "ann = $1\nbob = $2",
            "ann = \"$1\" ",
            "ann = \"$1\", bob = \"$2\" ",
        ),
        (
            "redirects",
            "/p = /r\n/o = { to = \"/n\", status = 302 }",
            "\"/q\"",
            "\"/r\"",
        ),
        (
            "index",
            "a.html\nb.html",
            "\n[site.\"a.test\".headers]",
            "index = [\"a.html\", \"b.html\"]\n\n[site.\"a.test\".headers]",
        ),
        (
            "compress",
            "false",
            "\n[site.\"a.test\".headers]",
            "compress = false\n\n[site.\"a.test\".headers]",
        ),
        (
            "errors",
            "404 = /e.html",
            "\n[site.\"a.test\".headers]",
            "errors = { 404 = \"/e.html\" }\n\n[site.\"a.test\".headers]",
        ),
    ] {
        let mut editor = Editor::new(FILE).unwrap();
        editor.set_field("a.test", form::find(name).unwrap(), text).unwrap();
        assert_eq!(editor.to_string(), FILE.replacen(from, to, 1), "{name}");
    }
}

#[test]
fn short_forms_are_written_where_they_are_enough() {
    let mut editor = Editor::new("[site.\"a.test\"]\nroot = \"/a\"\n").unwrap();
    for (name, text) in [
        ("aliases", "b.test"),
        ("listen", "8080"),
        ("proxy", "http://b"),
        // `files` writes nothing. The certificate file then creates the table `tls`.
        ("tls", "files"),
        ("tls.cert", "a.pem"),
        ("tls.key", "a.key"),
        ("limits.body_size", "1GiB"),
        ("headers", "A = 1\n\nB="),
        ("php", "8.2"),
    ] {
        editor.set_field("a.test", form::find(name).unwrap(), text).unwrap();
    }
    let expected = "[site.\"a.test\"]\nroot = \"/a\"\naliases = \"b.test\"\nlisten = 8080\nproxy = \"http://b\"\ntls = { cert = \
                    \"a.pem\", key = \"a.key\" }\nlimits = { body_size = \"1GiB\" }\nheaders = { A = \"1\", B = \"\" }\nphp = \
                    \"8.2\"\n";
    assert_eq!(editor.to_string(), expected);
    editor.set_field("a.test", form::find("tls").unwrap(), "auto").unwrap();
    editor
        .set_field("a.test", form::find("limits.body_size").unwrap(), "")
        .unwrap();
    let shorter = expected
        .replace("{ cert = \"a.pem\", key = \"a.key\" }", "\"auto\"")
        .replace("limits = { body_size = \"1GiB\" }\n", "");
    assert_eq!(editor.to_string(), shorter);
    let mut header = Editor::new("[site.\"a.test\"]\n[site.\"a.test\".tls]\ncert = \"a.pem\"\n").unwrap();
    header.set_field("a.test", form::find("tls").unwrap(), "local").unwrap();
    assert_eq!(header.to_string(), "[site.\"a.test\"]\ntls = \"local\"\n");
    // An issuer has no effect beside certificate files of the operator.
    let mut issuer = Editor::new("[site.\"a.test\"]\ntls = { issuer = \"local\", min = \"1.3\" }\n").unwrap();
    for (name, text) in [("tls", "files"), ("tls.cert", "a.pem"), ("tls.key", "a.key")] {
        issuer.set_field("a.test", form::find(name).unwrap(), text).unwrap();
    }
    let expected = "[site.\"a.test\"]\ntls = { min = \"1.3\", cert = \"a.pem\", key = \"a.key\" }\n";
    assert_eq!(issuer.to_string(), expected);
}

#[test]
fn names_in_maps_may_contain_an_equals_sign() {
    let redirects = form::find("redirects").unwrap();
    let mut editor = Editor::new("[site.\"a.test\"]\nredirects = { \"/a=b\" = \"/c\" }\n").unwrap();
    assert_eq!(text(&editor, "redirects"), "/a=b = /c\n");
    editor.set_field("a.test", redirects, "/a=b = /d\n").unwrap();
    let expected = "[site.\"a.test\"]\nredirects = { \"/a=b\" = \"/d\" }\n";
    assert_eq!(editor.to_string(), expected);
    // Each of these names would be read as another one.
    for entry in [
        r#""/a = b" = "/c""#,
        r#""/a=b" = ''"#,
        r#""/a\n/b" = "/c""#,
        r#"" /a" = "/c""#,
    ] {
        let editor = Editor::new(&format!("[site.\"a.test\"]\nredirects = {{ {entry} }}\n")).unwrap();
        let shown = editor.field("a.test", redirects);
        assert!(matches!(shown, FieldValue::Other(_)), "{entry}");
    }
}

#[test]
fn bans_are_switched_at_the_top_of_the_file() {
    let field = form::find_of_server("ban").unwrap();
    let before = "# Sites\n[site.\"a.test\"]\nroot = \"/srv\"\n";
    let mut editor = Editor::new(before).unwrap();
    assert_eq!(editor.field("", field), FieldValue::Missing);
    editor.set_field("", field, "true").unwrap();
    assert!(editor.to_string().starts_with("ban = true\n"), "{editor}");
    assert_eq!(editor.field("", field), FieldValue::Text("true".to_owned()));
    editor.set_field("", field, "").unwrap();
    assert_eq!(editor.field("", field), FieldValue::Missing);
    let table = Editor::new("[ban]\ntime = \"1d\"\n").unwrap();
    assert!(matches!(table.field("", field), FieldValue::Other(_)));
}

#[test]
fn invalid_texts_are_refused() {
    let mut editor = Editor::new("[site.\"a.test\"]\nproxy = { to = [{ url = \"http://a\" }] }\n").unwrap();
    let before = editor.to_string();
    let mut set = |site: &str, name: &str, text: &str| editor.set_field(site, form::find(name).unwrap(), text);
    assert_eq!(set("b.test", "root", "/a"), Err(EditError::NoSite("b.test".into())));
    assert_eq!(set("a.test", "headers", "X"), Err(EditError::NotAnEntry("X".into())));
    let repeated = Err(EditError::Repeated("X".into()));
    assert_eq!(set("a.test", "headers", "X = 1\nY = 2\nX=3"), repeated);
    assert!(matches!(
        set("a.test", "proxy", "http://b"),
        Err(EditError::NotAField(_))
    ));
    assert_eq!(editor.to_string(), before);
}

#[test]
fn defaults_and_examples_are_texts() {
    // Returns the default and the example of a field.
    let of = |name: &str| samples(form::find(name).unwrap());
    assert_eq!(of("enabled"), ("true".into(), "false".into()));
    assert_eq!(of("limits.body_size"), ("100MiB".into(), "10MiB".into()));
    assert_eq!(of("tls").0, "auto");
    assert_eq!(of("root"), (String::new(), "/var/www/example".into()));
    assert_eq!(of("errors").1, "404 = /404.html\n503 = /sorry.html\n");
    assert_eq!(of("index").0, "index.html\nindex.htm");
}
