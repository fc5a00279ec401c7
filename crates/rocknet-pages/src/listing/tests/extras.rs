//! Tests the filter, the views, the readme file, the script, and the link to the archive.

use base64ct::{Base64, Encoding};

use super::*;

#[test]
fn filters_are_decoded_and_bounded() {
    for (query, expected) in [
        ("", ""),
        ("filter=", ""),
        ("filter=a", "a"),
        ("sort=size&filter=two+words", "two words"),
        ("filter=%C3%A9%26%3D", "é&="),
        ("filter=%", "%"),
        ("filter=%2", "%2"),
        ("filter=%zz", "%zz"),
        ("filter=%FF", "\u{FFFD}"),
        ("filter=a&filter=b", "a"),
        ("xfilter=a", ""),
    ] {
        assert_eq!(Query::parse(query.as_bytes()).filter, expected, "{query}");
    }
    let long = format!("filter={}", "%41".repeat(MAX_FILTER + 1));
    assert_eq!(Query::parse(long.as_bytes()).filter.len(), MAX_FILTER);
    for (query, view, zip) in [
        ("", None, false),
        ("zip", None, true),
        ("view=grid&zip=1", Some(View::Grid), true),
        ("view=list", Some(View::List), false),
        ("view=tiles&zipped&zip=0", None, false),
    ] {
        let parsed = Query::parse(query.as_bytes());
        assert_eq!((parsed.view, parsed.zip), (view, zip), "{query}");
    }
}

#[test]
fn a_filter_selects_names_and_stays_in_the_links_of_the_folder() {
    let entries = || {
        vec![
            file("Report 1.txt"),
            file("notes.txt"),
            folder("reports"),
            file("ÉTÉ.txt"),
        ]
    };
    for (filter, expected) in [
        ("", vec!["reports", "notes.txt", "Report 1.txt", "ÉTÉ.txt"]),
        ("REPORT", vec!["reports", "Report 1.txt"]),
        ("été", vec!["ÉTÉ.txt"]),
        (".txt", vec!["notes.txt", "Report 1.txt", "ÉTÉ.txt"]),
        ("none", vec![]),
    ] {
        let listing = Listing {
            filter,
            ..listing("/", entries())
        };
        let parsed: Vec<serde_json::Value> = serde_json::from_slice(&json(&listing)).unwrap();
        let names: Vec<_> = parsed.iter().filter_map(|entry| entry["name"].as_str()).collect();
        assert_eq!(names, expected, "{filter}");
        let page = body(&listing);
        assert!(
            page.contains(&format!("name=\"filter\" value=\"{filter}\"")),
            "{filter}: {page}"
        );
        assert_eq!(page.contains("No name contains"), expected.is_empty(), "{filter}");
    }
    let hostile = Listing {
        filter: "\"><script>a&",
        sort: SortKey::Size,
        ..listing("/", entries())
    };
    let page = body(&hostile);
    assert!(!page.contains("<script>a"), "{page}");
    for expected in [
        "value=\"&quot;&gt;&lt;script&gt;a&amp;\"",
        "<b>No name contains “<bdi>&quot;&gt;&lt;script&gt;a&amp;</bdi>”.</b><a href=\"?sort=size&amp;order=asc\">",
        "<input type=\"hidden\" name=\"sort\" value=\"size\">",
    ] {
        assert!(page.contains(expected), "{expected} not in {page}");
    }
    let kept = Listing {
        filter: "report &1",
        ..listing("/", vec![file("report &1"), folder("report &1x")])
    };
    let page = body(&kept);
    for expected in [
        "href=\"?sort=name&amp;order=desc&amp;filter=report%20%261\"",
        "href=\"?view=grid&amp;filter=report%20%261\"",
        "href=\"./report%20%261x/\"",
    ] {
        assert!(page.contains(expected), "{expected} not in {page}");
    }
}

#[test]
fn the_grid_has_pictures_and_the_same_links() {
    let entries = vec![
        entry("a b.JPG", EntryKind::File, 1000, None),
        entry("huge.png", EntryKind::File, 1 << 30, None),
        entry("drawing.svg", EntryKind::File, 1, None),
        file("\"><script>.png"),
        folder("sub.png"),
        entry("pipe.png", EntryKind::Other, 0, None),
    ];
    let grid = Listing {
        view: View::Grid,
        sort: SortKey::Size,
        order: SortOrder::Desc,
        offers_zip: true,
        ..listing("/photos/", entries)
    };
    let page = body(&grid);
    for expected in [
        "<a class=\"p\" href=\"./a%20b.JPG\"><img alt=\"\" loading=\"lazy\" decoding=\"async\" src=\"./a%20b.JPG\"><b>",
        "<li data-e><a class=\"d\" href=\"./sub.png/?sort=size&amp;order=desc&amp;view=grid\">",
        "<a class=\"u\" href=\"../?sort=size&amp;order=desc&amp;view=grid\">",
        "src=\"./%22%3E%3Cscript%3E.png\"",
        "&quot;&gt;&lt;script&gt;.png",
        "<span class=\"o\">",
        "<a href=\"?sort=size&amp;order=desc\">List</a>",
        "<a href=\"?sort=size&amp;order=desc&amp;view=grid\" aria-current=\"true\">Grid</a>",
        "<a href=\"?zip\" rel=\"nofollow\" download>",
        "<a href=\"?sort=size&amp;order=asc&amp;view=grid\" aria-current=\"true\">size ↓</a>",
    ] {
        assert!(page.contains(expected), "{expected} not in {page}");
    }
    assert_eq!(page.matches("<img ").count(), 2, "{page}");
    assert!(!page.contains("<table"));
    // Where the grid is the default view, links do not name it, and the list is named.
    let page = body(&Listing {
        default_view: View::Grid,
        sort: SortKey::Name,
        order: SortOrder::Asc,
        ..grid
    });
    for expected in [
        "href=\"./sub.png/\"",
        "<a href=\"./\" aria-current=\"true\">Grid",
        "<a href=\"?view=list\">List",
    ] {
        assert!(page.contains(expected), "{expected} not in {page}");
    }
}

#[test]
fn the_policy_permits_the_script_of_the_page_and_no_other() {
    let page = body(&listing("/", vec![file("a")]));
    let (_, rest) = page.split_once("<script>").unwrap();
    let (script, _) = rest.split_once("</script>").unwrap();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script.as_bytes());
    let mut encoded = [0; 64];
    let hash = Base64::encode(digest.as_ref(), &mut encoded).unwrap();
    assert!(
        CONTENT_SECURITY_POLICY.contains(&format!("script-src 'sha256-{hash}';")),
        "the hash of the script is {hash}"
    );
    assert_eq!(page.matches("<script").count(), 1);
}

/// Returns the section of a readme file with this name and text.
fn readme(name: &str, text: &str) -> String {
    let listing = Listing {
        readme: Some(Readme {
            name: name.to_owned(),
            text: text.to_owned(),
            is_cut: false,
        }),
        ..listing("/", vec![file("a")])
    };
    let page = body(&listing);
    let (_, section) = page.split_once("<section").unwrap();
    section.split_once("</section>").unwrap().0.to_owned()
}

#[test]
fn markdown_is_rendered_without_html_scripts_and_foreign_pictures() {
    for (text, expected) in [
        ("# Title\n\ntext *em*", "<h3>Title</h3>\n<p>text <em>em</em></p>"),
        ("###### low", "<h6>low</h6>"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "<th>a</th>"),
        ("- [x] done", "type=\"checkbox\""),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a <b onclick=x>b</b>", "a &lt;b onclick=x&gt;b&lt;/b&gt;"),
        ("[a](javascript:alert(1))", "<a href=\"#\">a</a>"),
        ("[a](JavaScript&#58;alert(1))", "<a href=\"#\">a</a>"),
        ("[a](&#1;javascript:alert(1))", "<a href=\"#\">a</a>"),
        ("[a](java&Tab;script:alert(1))", "<a href=\"#\">a</a>"),
        ("[a](data:text/html,x)", "<a href=\"#\">a</a>"),
        ("[a](vbscript:x)", "<a href=\"#\">a</a>"),
        ("<javascript:alert(1)>", "<a href=\"#\">"),
        (
            "[a](https://example.com/x:y)",
            "<a href=\"https://example.com/x:y\">a</a>",
        ),
        ("[a](docs/x:y.md#z)", "<a href=\"docs/x:y.md#z\">a</a>"),
        ("<me@example.com>", "<a href=\"mailto:me@example.com\">"),
        ("![pic](img/a.png)", "<img src=\"img/a.png\" alt=\"pic\" />"),
        (
            "![pic](https://tracker.example/a.png)",
            "<a href=\"https://tracker.example/a.png\">pic</a>",
        ),
        (
            "![pic](//tracker.example/a.png)",
            "<a href=\"//tracker.example/a.png\">pic</a>",
        ),
        ("![pic](javascript:x)", "<a href=\"#\">pic</a>"),
        (
            "![out ![in](a.png)](https://b/c.png)",
            "<a href=\"https://b/c.png\">out <img src=\"a.png\" alt=\"in\" /></a>",
        ),
        ("[a](x \"t\\\" onmouseover=x\")", "title=\"t&quot; onmouseover=x\""),
        ("```html\n<i>\n```", "&lt;i&gt;"),
    ] {
        let section = readme("README.md", text);
        assert!(section.contains(expected), "{text}: {expected} not in {section}");
        for banned in ["<script", "<b ", "=\"javascript", "<i>"] {
            assert!(!section.contains(banned), "{text}: {banned} in {section}");
        }
    }
}

#[test]
fn other_readme_files_are_plain_text() {
    let section = readme("README", "# a <b>\r\n\tx\u{202E}\u{1B}\n");
    assert!(section.contains("<bdi>README</bdi>"), "{section}");
    assert!(
        section.contains("<pre># a &lt;b&gt;\n\tx\u{FFFD}\u{FFFD}\n</pre>"),
        "{section}"
    );
    for (name, expected) in [
        ("README.md", Some(0)),
        ("readme.Markdown", Some(1)),
        ("ReadMe.txt", Some(2)),
        ("README", Some(3)),
        ("README.html", None),
        ("READ", None),
    ] {
        assert_eq!(readme_rank(name), expected, "{name}");
    }
}

#[test]
fn hostile_markdown_takes_no_long_time() {
    for text in [
        "[",
        "![",
        "> ",
        "*a ",
        "`",
        "|",
        "<",
        "[a](",
        "&",
        "- ",
        "\\",
        "[a]: b\n[a] ",
    ] {
        let text: String = text.repeat(MAX_README / text.len());
        let started = std::time::Instant::now();
        let section = readme("README.md", &text);
        assert!(section.len() < 64 * MAX_README, "{} bytes", section.len());
        assert!(started.elapsed().as_secs() < 20, "{}", &text[..8]);
    }
}
