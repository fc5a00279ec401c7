//! Renders listings as HTML: breadcrumbs, totals, and a table whose column headers are links that sort it.

use super::format::{UtcDateTime, counted, grouped, size};
use super::{EntryKind, Listing, ListingEntry, SortKey, SortOrder};
use crate::text::push_html;

/// Returns the page, with at most [`super::MAX_ENTRIES`] entries.
pub fn html(listing: &Listing<'_>) -> Vec<u8> {
    let entries = listing.sorted();
    let mut out = Vec::with_capacity(PAGE_RESERVE + entries.len() * ROW_RESERVE);
    let order_query = order_query_of(listing);

    push(&mut out, HEAD);
    push_html(&mut out, listing.path);
    push(&mut out, "</title>\n<style>");
    push(&mut out, STYLE);
    push(&mut out, "</style>\n<main>\n");
    push_breadcrumbs(&mut out, listing.path, &order_query);
    push_totals(&mut out, &entries);
    let has_parent = listing.path != "/";
    if entries.is_empty() && !listing.is_cut() {
        push_empty(&mut out, has_parent, &order_query);
    } else {
        push_table(&mut out, listing, &entries, has_parent, &order_query);
    }
    if listing.is_cut() {
        push(
            &mut out,
            "<p class=\"note\">The list stops here. This folder has more than the ",
        );
        push(&mut out, &grouped(entries.len() as u64));
        push(&mut out, " entries shown.</p>\n");
    }
    push(&mut out, "<footer>RockNet</footer>\n</main>\n</html>\n");
    out
}

/// Appends the breadcrumbs. Each step except the last, the listed folder, is a link. Links are relative, so they also
/// work if a server in front of this one adds a path prefix.
fn push_breadcrumbs(out: &mut Vec<u8>, path: &str, order_query: &str) {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    push(out, "<nav aria-label=\"Folder path\"><h1>");
    let Some((current, ancestors)) = steps.split_last() else {
        push(out, "<span aria-current=\"page\">Index of /</span></h1></nav>\n");
        return;
    };
    push(out, "<a href=\"");
    push_up(out, steps.len());
    push(out, order_query);
    push(out, "\" aria-label=\"Top folder\">/</a>");
    let skipped = ancestors.len().saturating_sub(MAX_CRUMBS);
    if skipped > 0 {
        push(out, "…<i>/</i>");
    }
    for (index, step) in ancestors.iter().enumerate().skip(skipped) {
        push(out, "<a href=\"");
        push_up(out, ancestors.len() - index);
        push(out, order_query);
        push(out, "\"><bdi>");
        push_html(out, step);
        push(out, "</bdi></a><i>/</i>");
    }
    push(out, "<span aria-current=\"page\"><bdi>");
    push_html(out, current);
    push(out, "</bdi></span></h1></nav>\n");
}

/// Appends the relative link to the folder this number of levels above.
fn push_up(out: &mut Vec<u8>, levels: usize) {
    for _ in 0..levels {
        push(out, "../");
    }
}

/// Appends the totals of the shown entries: `3 folders, 12 files, 4.2 MiB`.
fn push_totals(out: &mut Vec<u8>, entries: &[&ListingEntry]) {
    let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count() as u64;
    let files = count(EntryKind::File);
    let mut parts = Vec::new();
    for (number, one, many) in [
        (count(EntryKind::Directory), "folder", "folders"),
        (files, "file", "files"),
        (count(EntryKind::Other), "special file", "special files"),
    ] {
        if number > 0 {
            parts.push(counted(number, one, many));
        }
    }
    if files > 0 {
        parts.push(size(
            entries
                .iter()
                .fold(0, |sum, entry| sum.saturating_add(entry.counted_size())),
        ));
    }
    if !parts.is_empty() {
        push(out, "<p class=\"sum\">");
        push(out, &parts.join(", "));
        push(out, "</p>\n");
    }
}

/// Appends the text that replaces the table of an empty folder.
fn push_empty(out: &mut Vec<u8>, has_parent: bool, order_query: &str) {
    push(out, "<p class=\"empty\"><b>This folder is empty.</b>");
    if has_parent {
        push(out, "<a href=\"../");
        push(out, order_query);
        push(out, "\">Back to the folder above</a>");
    } else {
        push(out, "Files put here show up on the next visit.");
    }
    push(out, "</p>\n");
}

fn push_table(
    out: &mut Vec<u8>,
    listing: &Listing<'_>,
    entries: &[&ListingEntry],
    has_parent: bool,
    order_query: &str,
) {
    push(
        out,
        "<table>\n<caption class=\"vh\">Files and folders; the column headers sort them</caption>\n<thead><tr>",
    );
    for (sort, title) in [
        (SortKey::Name, "Name"),
        (SortKey::Size, "Size"),
        (SortKey::Time, "Modified<i> (UTC)</i>"),
    ] {
        push_header(out, listing, sort, title);
    }
    push(out, "</tr></thead>\n<tbody>\n");
    if has_parent {
        push(out, "<tr><td><a class=\"u\" href=\"../");
        push(out, order_query);
        push(out, "\">Folder above</a></td><td></td><td></td></tr>\n");
    }
    for entry in entries {
        push_row(out, entry, order_query);
    }
    push(out, "</tbody>\n</table>\n");
}

/// Appends a column header, a link that sorts by this column. The link of the current column reverses the order. The
/// link of another column starts with the most useful order: names ascending, sizes and times descending.
fn push_header(out: &mut Vec<u8>, listing: &Listing<'_>, sort: SortKey, title: &str) {
    let (state, next) = match (listing.sort == sort, listing.order) {
        (true, SortOrder::Asc) => (" aria-sort=\"ascending\"", SortOrder::Desc),
        (true, SortOrder::Desc) => (" aria-sort=\"descending\"", SortOrder::Asc),
        (false, _) if sort == SortKey::Name => ("", SortOrder::Asc),
        (false, _) => ("", SortOrder::Desc),
    };
    push(out, "<th scope=\"col\"");
    push(out, state);
    push(out, "><a href=\"");
    push(out, &query(sort, next));
    push(out, "\">");
    push(out, title);
    push(out, "</a></th>");
}

fn push_row(out: &mut Vec<u8>, entry: &ListingEntry, order_query: &str) {
    push(out, "<tr><td>");
    if entry.kind == EntryKind::Other {
        push(out, "<span class=\"o\"><bdi>");
    } else {
        push(out, "<a class=\"");
        push(out, icon(entry));
        push(out, "\" href=\"");
        entry.push_href(out);
        if entry.kind == EntryKind::Directory {
            push(out, order_query);
        }
        push(out, "\"><bdi>");
    }
    push_html(out, &entry.name);
    push(
        out,
        match entry.kind {
            EntryKind::Directory => "</bdi>/</a></td><td>",
            EntryKind::File => "</bdi></a></td><td>",
            EntryKind::Other => "</bdi></span></td><td>",
        },
    );
    if entry.kind == EntryKind::File {
        push(out, &size(entry.size));
    }
    push(out, "</td><td>");
    if let Some(seconds) = entry.modified_unix {
        let date_time = UtcDateTime::from_unix(seconds);
        push(out, "<time datetime=\"");
        push(out, &date_time.rfc3339());
        push(out, "\">");
        push(out, &date_time.date());
        push(out, "<i> ");
        push(out, &date_time.clock());
        push(out, "</i></time>");
    }
    push(out, "</td></tr>\n");
}

/// Returns the class of the entry's icon in `assets/listing.css`: `d` for a directory, `i` for an image, `z` for an
/// archive, `m` for audio or video, and `f` for any other file.
fn icon(entry: &ListingEntry) -> &'static str {
    if entry.kind == EntryKind::Directory {
        return "d";
    }
    let extension = entry.name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is = |known: &[&str]| known.iter().any(|word| word.eq_ignore_ascii_case(extension));
    if is(&[
        "avif", "bmp", "gif", "ico", "jpeg", "jpg", "jxl", "png", "svg", "tiff", "webp",
    ]) {
        "i"
    } else if is(&[
        "7z", "br", "bz2", "deb", "gz", "iso", "jar", "rar", "rpm", "tar", "tgz", "xz", "zip", "zst",
    ]) {
        "z"
    } else if is(&[
        "aac", "avi", "flac", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "ogg", "opus", "wav", "webm",
    ]) {
        "m"
    } else {
        "f"
    }
}

/// Returns the query that keeps the chosen order in links to other folders, escaped for HTML; empty for the default
/// order.
fn order_query_of(listing: &Listing<'_>) -> String {
    match (listing.sort, listing.order) {
        (SortKey::Name, SortOrder::Asc) => String::new(),
        (sort, order) => query(sort, order),
    }
}

/// Returns the query for an order, escaped for HTML.
fn query(sort: SortKey, order: SortOrder) -> String {
    format!("?sort={}&amp;order={}", sort.word(), order.word())
}

/// Appends text that is already HTML.
fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Maximum number of ancestor folders in the breadcrumbs, not counting the top folder. The link to an ancestor has
/// `../` for each level. Without a limit, the page would grow with the square of the depth: 6 MB for the deepest path
/// that Linux allows.
const MAX_CRUMBS: usize = 32;

/// Number of bytes reserved for the head, the style and the frame of the table.
const PAGE_RESERVE: usize = 8 * 1024;

/// Number of bytes reserved for a row with a name of ordinary length.
const ROW_RESERVE: usize = 192;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
    <title>Index of ";

const STYLE: &str = concat!(
    include_str!("../assets/base.css"),
    include_str!("../assets/listing.css")
);
