//! Tests listings: escaping of names, order, links that sort, and totals.

use super::*;

mod extras;
mod names;

fn entry(name: &str, kind: EntryKind, size: u64, modified_unix: Option<i64>) -> ListingEntry {
    ListingEntry {
        name: name.to_owned(),
        kind,
        size,
        modified_unix,
    }
}

fn file(name: &str) -> ListingEntry {
    entry(name, EntryKind::File, 0, None)
}

fn folder(name: &str) -> ListingEntry {
    entry(name, EntryKind::Directory, 4096, None)
}

fn listing(path: &str, entries: Vec<ListingEntry>) -> Listing<'_> {
    Listing {
        path,
        entries,
        sort: SortKey::Name,
        order: SortOrder::Asc,
        truncated: false,
        filter: "",
        view: View::List,
        default_view: View::List,
        offers_zip: false,
        readme: None,
    }
}

fn page(listing: &Listing<'_>) -> String {
    String::from_utf8(html(listing)).unwrap()
}

/// Returns the page after its style sheet, because the style sheet contains quotes and brackets, too.
fn body(listing: &Listing<'_>) -> String {
    page(listing).split_once("</style>").unwrap().1.to_owned()
}

#[test]
fn queries_select_the_order_and_invalid_parts_are_ignored() {
    let rows: [(&str, SortKey, SortOrder); 14] = [
        ("", SortKey::Name, SortOrder::Asc),
        ("sort=name&order=asc", SortKey::Name, SortOrder::Asc),
        ("sort=size", SortKey::Size, SortOrder::Asc),
        ("sort=time&order=desc", SortKey::Time, SortOrder::Desc),
        ("order=desc&sort=time", SortKey::Time, SortOrder::Desc),
        ("order=desc", SortKey::Name, SortOrder::Desc),
        ("sort=colour&order=up", SortKey::Name, SortOrder::Asc),
        ("sort=size&sort=time", SortKey::Size, SortOrder::Asc),
        ("SORT=size", SortKey::Name, SortOrder::Asc),
        ("xsort=size", SortKey::Name, SortOrder::Asc),
        ("sort=sizes", SortKey::Name, SortOrder::Asc),
        ("sort", SortKey::Name, SortOrder::Asc),
        ("&&=&sort=size&", SortKey::Size, SortOrder::Asc),
        ("a=1&sort=time&b", SortKey::Time, SortOrder::Asc),
    ];
    for (query, sort, order) in rows {
        let parsed = Query::parse(query.as_bytes());
        assert_eq!((parsed.sort, parsed.order), (sort, order), "{query:?}");
    }
    assert_eq!(Query::parse(b"\xFF=\0&sort=size").sort, SortKey::Size);
}

#[test]
fn written_queries_are_parsed() {
    for sort in [SortKey::Name, SortKey::Size, SortKey::Time] {
        for order in [SortOrder::Asc, SortOrder::Desc] {
            let query = format!("sort={}&order={}", sort.word(), order.word());
            let parsed = Query::parse(query.as_bytes());
            assert_eq!((parsed.sort, parsed.order), (sort, order));
        }
    }
}

#[test]
fn entries_have_the_requested_order() {
    let entries = vec![
        entry("img10.png", EntryKind::File, 5, Some(300)),
        entry("zoo", EntryKind::Directory, 1 << 40, Some(1)),
        entry("img2.png", EntryKind::File, 70, None),
        entry("pipe", EntryKind::Other, 99, Some(200)),
        entry("attic", EntryKind::Directory, 0, Some(900)),
        entry("IMG1.png", EntryKind::File, 5, Some(100)),
    ];
    let rows = [
        (
            SortKey::Name,
            SortOrder::Asc,
            "attic zoo IMG1.png img2.png img10.png pipe",
        ),
        (
            SortKey::Name,
            SortOrder::Desc,
            "zoo attic pipe img10.png img2.png IMG1.png",
        ),
        (
            SortKey::Size,
            SortOrder::Asc,
            "attic zoo pipe IMG1.png img10.png img2.png",
        ),
        (
            SortKey::Size,
            SortOrder::Desc,
            "attic zoo img2.png IMG1.png img10.png pipe",
        ),
        (
            SortKey::Time,
            SortOrder::Asc,
            "zoo attic img2.png IMG1.png pipe img10.png",
        ),
        (
            SortKey::Time,
            SortOrder::Desc,
            "attic zoo img10.png pipe IMG1.png img2.png",
        ),
    ];
    for (sort, order, expected) in rows {
        let listing = Listing {
            sort,
            order,
            ..listing("/", entries.clone())
        };
        let names: Vec<&str> = listing.sorted().iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names.join(" "), expected, "{sort:?} {order:?}");

        let page = body(&listing);
        let positions: Vec<usize> = names
            .iter()
            .map(|name| page.find(&format!("<bdi>{name}</bdi>")).unwrap())
            .collect();
        assert!(
            positions.is_sorted(),
            "{sort:?} {order:?}: the page has a different order"
        );
    }
}

#[test]
fn headers_sort_by_plain_links() {
    let asc = " aria-sort=\"ascending\"";
    let desc = " aria-sort=\"descending\"";
    // (sort key, order, headers: attribute, sort key and order of the link)
    let rows = [
        (
            SortKey::Name,
            SortOrder::Asc,
            [(asc, "name", "desc"), ("", "size", "desc"), ("", "time", "desc")],
        ),
        (
            SortKey::Name,
            SortOrder::Desc,
            [(desc, "name", "asc"), ("", "size", "desc"), ("", "time", "desc")],
        ),
        (
            SortKey::Size,
            SortOrder::Desc,
            [("", "name", "asc"), (desc, "size", "asc"), ("", "time", "desc")],
        ),
        (
            SortKey::Time,
            SortOrder::Asc,
            [("", "name", "asc"), ("", "size", "desc"), (asc, "time", "desc")],
        ),
    ];
    for (sort, order, headers) in rows {
        let page = body(&Listing {
            sort,
            order,
            ..listing("/", vec![file("a")])
        });
        for (state, sort, order) in headers {
            let expected = format!("<th scope=\"col\"{state}><a href=\"?sort={sort}&amp;order={order}\">");
            assert!(page.contains(&expected), "{expected} not in {page}");
        }
        assert_eq!(page.matches("aria-sort").count(), 1);
    }
}

#[test]
fn links_to_folders_keep_the_chosen_order() {
    let chosen = Listing {
        sort: SortKey::Size,
        order: SortOrder::Desc,
        ..listing("/a/b/", vec![folder("c"), file("d")])
    };
    let page = body(&chosen);
    for expected in [
        "href=\"./c/?sort=size&amp;order=desc\"",
        "href=\"../?sort=size&amp;order=desc\"",
        "href=\"../../?sort=size&amp;order=desc\"",
        "href=\"./d\"",
    ] {
        assert!(page.contains(expected), "{expected} not in {page}");
    }
    assert!(body(&listing("/a/", vec![folder("c")])).contains("href=\"./c/\""));
}

/// Returns the page of a folder with one file.
fn page_of(path: &str) -> String {
    page(&listing(path, vec![file("a")]))
}

#[test]
fn breadcrumbs_lead_upwards() {
    let deep = format!("/{}", "x/".repeat(2000));
    let rows: [(&str, &[&str]); 4] = [
        (
            "/",
            &[
                "<title>Index of /</title>",
                "<span aria-current=\"page\">Index of /</span></h1>",
            ],
        ),
        (
            "/a/",
            &["<a href=\"../\" aria-label=\"Top folder\">/</a><span aria-current=\"page\"><bdi>a</bdi></span>"],
        ),
        (
            "/a/b&c/d/",
            &[
                "<title>Index of /a/b&amp;c/d/</title>",
                "<a href=\"../../../\" aria-label=\"Top folder\">/</a>",
                "<a href=\"../../\"><bdi>a</bdi></a><i>/</i>",
                "<a href=\"../\"><bdi>b&amp;c</bdi></a><i>/</i><span aria-current=\"page\"><bdi>d</bdi></span>",
                "<a class=\"u\" href=\"../\">Folder above</a>",
            ],
        ),
        (&deep, &["aria-label=\"Top folder\">/</a>…<i>/</i><a href=\""]),
    ];
    for (path, expected) in rows {
        let page = page_of(path);
        for expected in expected {
            assert!(page.contains(expected), "{path}: {expected} not in {page}");
        }
        // Links to all ancestors of the deep path would take megabytes.
        assert!(page.len() < 32 * 1024, "{path}: {} bytes", page.len());
    }
    assert!(!page_of("/").contains("../"));
}

/// The text of the first link ends with a slash, and the other links are followed by a slash. Both slashes need the
/// same spacing.
#[test]
fn breadcrumbs_are_evenly_spaced() {
    let page = page_of("/a/b/");
    let rule = |selector: &str| {
        let (_, rest) = page
            .split_once(selector)
            .unwrap_or_else(|| panic!("{selector}: {page}"));
        rest.split_once('}').unwrap().0
    };
    let separator = rule("\nh1 i{");
    let space = separator.split_once("padding:0 ").unwrap().1;
    assert_eq!(rule("\nh1 a:first-child{"), format!("padding-right:{space}"));
    assert!(
        page.contains("<h1><a href=\"../../\" aria-label=\"Top folder\">/</a>"),
        "{page}"
    );
}

#[test]
fn totals_count_the_shown_entries() {
    let sized = |name: &str, size| entry(name, EntryKind::File, size, None);
    let rows = [
        (vec![folder("a")], "1 folder"),
        (vec![sized("a", 0)], "1 file, 0 B"),
        (
            vec![folder("a"), folder("b"), sized("c", 1000), sized("d", 434)],
            "2 folders, 2 files, 1.4 KiB",
        ),
        (vec![entry("p", EntryKind::Other, 7, None)], "1 special file"),
        (vec![sized("a", u64::MAX), sized("b", u64::MAX)], "2 files, 16 EiB"),
    ];
    for (entries, expected) in rows {
        let page = body(&listing("/", entries));
        assert!(
            page.contains(&format!("<p class=\"sum\">{expected}</p>")),
            "{expected} not in {page}"
        );
    }
}

#[test]
fn an_empty_folder_is_reported() {
    let top = body(&listing("/", Vec::new()));
    assert!(
        top.contains("This folder is empty.") && !top.contains("<table") && !top.contains("../"),
        "{top}"
    );
    let below = body(&listing("/a/", Vec::new()));
    assert!(
        below.contains("<a href=\"../\">Back to the folder above</a>"),
        "{below}"
    );
    assert_eq!(json(&listing("/", Vec::new())), b"[\n]\n");
}

#[test]
fn a_truncated_list_is_reported() {
    let many = |count: usize| (0..count).map(|n| file(&format!("f{n}"))).collect::<Vec<_>>();
    // (number of entries, true if the caller omitted entries, number of shown entries, note)
    let rows = [
        (0, true, 0, Some("more than the 0 entries shown")),
        (3, false, 3, None),
        (3, true, 3, Some("more than the 3 entries shown")),
        (MAX_ENTRIES, false, MAX_ENTRIES, None),
        (
            MAX_ENTRIES + 1,
            false,
            MAX_ENTRIES,
            Some("more than the 10,000 entries shown"),
        ),
    ];
    for (given, truncated, shown, note) in rows {
        let listing = Listing {
            truncated,
            ..listing("/", many(given))
        };
        let page = body(&listing);
        assert_eq!(page.matches("<bdi>").count(), shown);
        assert_eq!(page.contains("The list stops here."), note.is_some(), "{given}");
        assert!(!page.contains("This folder is empty."), "{given}");
        assert!(note.is_none_or(|note| page.contains(note)), "{given}");
        let parsed: Vec<serde_json::Value> = serde_json::from_slice(&json(&listing)).unwrap();
        assert_eq!(parsed.len(), shown);
    }
}

#[test]
fn json_matches_the_page() {
    let entries = vec![
        entry("b.txt", EntryKind::File, 1434, Some(1_795_264_267)),
        entry("a b", EntryKind::Directory, 4096, None),
        entry("socket", EntryKind::Other, 5, Some(0)),
    ];
    let parsed: serde_json::Value = serde_json::from_slice(&json(&listing("/x/", entries))).unwrap();
    assert_eq!(
        parsed,
        serde_json::json!([
            { "name": "a b", "type": "directory", "size": null, "modified": null, "url": "./a%20b/" },
            { "name": "b.txt", "type": "file", "size": 1434, "modified": "2026-11-21T12:31:07Z", "url": "./b.txt" },
            { "name": "socket", "type": "other", "size": null, "modified": "1970-01-01T00:00:00Z", "url": null },
        ])
    );
}

#[test]
fn a_page_is_rendered_exactly() {
    let entries = vec![
        entry("photo.JPG", EntryKind::File, 2_097_152, Some(1_795_264_267)),
        entry("music", EntryKind::Directory, 4096, Some(0)),
        entry("notes.tar.gz", EntryKind::File, 10, None),
    ];
    let expected = r#"
<main>
<nav aria-label="Folder path"><h1><a href="../" aria-label="Top folder">/</a><span aria-current="page"><bdi>mine</bdi></span></h1></nav>
<p class="sum">1 folder, 2 files, 2.0 MiB</p>
<div class="bar"><form role="search"><input type="search" name="filter" value="" placeholder="Filter names" aria-label="Filter names" maxlength="255" autocomplete="off" spellcheck="false"><button>Filter</button> <output></output></form>
<nav aria-label="Views"><a href="./" aria-current="true">List</a><a href="?view=grid">Grid</a></nav></div>
<table class="list">
<caption class="vh">Files and folders; the column headers sort them</caption>
<thead><tr><th scope="col" aria-sort="ascending"><a href="?sort=name&amp;order=desc">Name</a></th><th scope="col"><a href="?sort=size&amp;order=desc">Size</a></th><th scope="col"><a href="?sort=time&amp;order=desc">Modified<i> (UTC)</i></a></th></tr></thead>
<tbody>
<tr><td><a class="u" href="../">Folder above</a></td><td></td><td></td></tr>
<tr data-e><td><a class="d" href="./music/"><bdi>music</bdi>/</a></td><td></td><td><time datetime="1970-01-01T00:00:00Z">1970-01-01<i> 00:00</i></time></td></tr>
<tr data-e><td><a class="z" href="./notes.tar.gz"><bdi>notes.tar.gz</bdi></a></td><td>10 B</td><td></td></tr>
<tr data-e><td><a class="i" href="./photo.JPG"><bdi>photo.JPG</bdi></a></td><td>2.0 MiB</td><td><time datetime="2026-11-21T12:31:07Z">2026-11-21<i> 12:31</i></time></td></tr>
</tbody>
</table>
<script>SCRIPT</script>
<footer>RockNet</footer>
</main>
</html>
"#;
    assert_eq!(body(&listing("/mine/", entries)).replace(SCRIPT, "SCRIPT"), expected);
}

#[test]
fn pages_cause_no_further_requests() {
    let page = page(&listing("/", vec![file("a"), folder("b")]));
    // The only URLs are the XML namespaces of the icons, which are not fetched.
    assert_eq!(
        page.matches("http").count(),
        page.matches("xmlns='http://www.w3.org/2000/svg'").count()
    );
    for forbidden in ["@import", "<iframe", "src=", "<link rel=\"stylesheet"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}
