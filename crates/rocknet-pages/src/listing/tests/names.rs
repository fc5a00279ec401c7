//! Tests listings of hostile file names, which must be shown and linked as plain text.

use super::*;
use proptest::prelude::*;

#[test]
fn hostile_names_have_no_effect() {
    // (name, URL, text in the page)
    let rows = [
        (
            "<script>alert(1)</script>",
            "./%3Cscript%3Ealert%281%29%3C%2Fscript%3E",
            "&lt;script&gt;alert(1)&lt;/script&gt;",
        ),
        (
            "\"><img src=x onerror=alert(1)>",
            "./%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E",
            "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;",
        ),
        (
            "javascript:alert(1)",
            "./javascript%3Aalert%281%29",
            "javascript:alert(1)",
        ),
        ("data:text/html,x", "./data%3Atext%2Fhtml%2Cx", "data:text/html,x"),
        ("//evil.example", "./%2F%2Fevil.example", "//evil.example"),
        ("\\\\evil.example", "./%5C%5Cevil.example", "\\\\evil.example"),
        ("' onclick='x", "./%27%20onclick%3D%27x", "&#39; onclick=&#39;x"),
        (
            "photo\u{202E}gpj.exe",
            "./photo%E2%80%AEgpj.exe",
            "photo\u{FFFD}gpj.exe",
        ),
        (
            "a\r\nSet-Cookie: x",
            "./a%0D%0ASet-Cookie%3A%20x",
            "a\u{FFFD}\u{FFFD}Set-Cookie: x",
        ),
        ("?sort=size#x", "./%3Fsort%3Dsize%23x", "?sort=size#x"),
        (
            "</style></title>&amp;",
            "./%3C%2Fstyle%3E%3C%2Ftitle%3E%26amp%3B",
            "&lt;/style&gt;&lt;/title&gt;&amp;amp;",
        ),
        ("שלום.txt", "./%D7%A9%D7%9C%D7%95%D7%9D.txt", "שלום.txt"),
    ];
    for (name, href, text) in rows {
        for (kind, slash) in [(EntryKind::File, ""), (EntryKind::Directory, "/")] {
            let listing = listing("/", vec![entry(name, kind, 0, None)]);
            let page = body(&listing);
            let expected = format!(" href=\"{href}{slash}\"><bdi>{text}</bdi>{slash}</a>");
            assert!(page.contains(&expected), "{expected} not in {page}");
            let parsed: serde_json::Value = serde_json::from_slice(&json(&listing)).unwrap();
            assert_eq!(parsed[0]["name"], name);
            assert_eq!(parsed[0]["url"], format!("{href}{slash}"));
        }
        let page = body(&listing("/", vec![entry(name, EntryKind::Other, 0, None)]));
        assert!(
            page.contains(&format!("<span class=\"o\"><bdi>{text}</bdi></span>")),
            "{page}"
        );

        // The same name as a parent folder must be escaped in the title and the breadcrumbs.
        let path = format!("/{}/below/", name.replace('/', "_"));
        let here = page_of(&path);
        // The page has one script of its own.
        assert_eq!(
            (here.matches("<script").count(), here.matches("<img").count()),
            (1, 0),
            "{here}"
        );
        assert!(!here.contains(['\u{202E}', '\r']), "{here:?}");
        assert_eq!(here.matches("</title>").count(), 1, "{here}");
        assert_eq!(here.matches("</style>").count(), 1, "{here}");
    }
}

proptest! {
    #[test]
    fn names_add_text_but_no_markup(name in "[<>\"'&=/ a\\u{202E}\\u{2066}\\n\\x00%?#:.]{1,12}|.{1,8}") {
        let markup = |page: &str| page.matches(['<', '>', '"', '\'']).count();
        for kind in [EntryKind::File, EntryKind::Directory, EntryKind::Other] {
            let of = |name: &str| body(&listing("/", vec![entry(name, kind, 0, None)]));
            let page = of(&name);
            prop_assert_eq!(markup(&page), markup(&of("x")), "{}", page);
            let disguised = page.contains(['\u{202E}', '\u{2066}', '\0']);
            prop_assert!(!disguised, "{}", page);
        }
        let listing = listing("/", vec![entry(&name, EntryKind::File, 1, Some(0))]);
        let parsed: serde_json::Value = serde_json::from_slice(&json(&listing)).unwrap();
        prop_assert_eq!(parsed[0]["name"].as_str(), Some(name.as_str()));
    }
}
