//! Renders listings as HTML: breadcrumbs, totals, the toolbar, and the entries as a grid or as a table whose column
//! headers are links that sort it.

use super::format::{UtcDateTime, counted, grouped, size};
use super::grid::push_grid;
use super::query::Links;
use super::readme::push_readme;
use super::toolbar::push_toolbar;
use super::{EntryKind, Listing, ListingEntry, SCRIPT, SortKey, SortOrder, View, push};
use crate::text::push_html;

/// Returns the page, with at most [`super::MAX_ENTRIES`] entries.
pub fn html(listing: &Listing<'_>) -> Vec<u8> {
    let entries = listing.sorted();
    let mut out = Vec::with_capacity(PAGE_RESERVE + entries.len() * ROW_RESERVE);
    let links = Links::of(listing);
    let to_folder = links.to_folder();

    push(&mut out, HEAD);
    push_html(&mut out, listing.path);
    push(&mut out, "</title>\n<style>");
    push(&mut out, STYLE);
    push(&mut out, "</style>\n<main>\n");
    push_breadcrumbs(&mut out, listing.path, &to_folder);
    push_totals(&mut out, &entries);
    let has_parent = listing.path != "/";
    let has_entries = !listing.entries.is_empty();
    if has_entries {
        push_toolbar(&mut out, listing, &links);
    }
    match (has_entries, entries.is_empty()) {
        (false, _) if !listing.truncated => push_empty(&mut out, has_parent, &to_folder),
        (true, true) => push_no_match(&mut out, listing.filter, &links),
        _ if listing.view == View::Grid => push_grid(&mut out, listing, &entries, has_parent, &links),
        _ => push_table(&mut out, listing, &entries, has_parent, &links),
    }
    if listing.is_cut() {
        push(
            &mut out,
            "<p class=\"note\">The list stops here. This folder has more than the ",
        );
        push(&mut out, &grouped(listing.entries.len().min(super::MAX_ENTRIES) as u64));
        push(&mut out, " entries ");
        push(
            &mut out,
            if listing.filter.is_empty() {
                "shown.</p>\n"
            } else {
                "searched.</p>\n"
            },
        );
    }
    if let Some(readme) = &listing.readme {
        push_readme(&mut out, readme);
    }
    if has_entries {
        push(&mut out, "<script>");
        push(&mut out, SCRIPT);
        push(&mut out, "</script>\n");
    }
    push(&mut out, "<footer>RockNet</footer>\n</main>\n</html>\n");
    out
}

/// Appends the breadcrumbs. Each step except the last, the listed folder, is a link. Links are relative, so they also
/// work if a server in front of this one adds a path prefix. `to_folder`: query of the links, from
/// [`Links::to_folder`].
fn push_breadcrumbs(out: &mut Vec<u8>, path: &str, to_folder: &str) {
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    push(out, "<nav aria-label=\"Folder path\"><h1>");
    let Some((current, ancestors)) = steps.split_last() else {
        push(out, "<span aria-current=\"page\">Index of /</span></h1></nav>\n");
        return;
    };
    push(out, "<a href=\"");
    push_up(out, steps.len());
    push(out, to_folder);
    push(out, "\" aria-label=\"Top folder\">/</a>");
    let skipped = ancestors.len().saturating_sub(MAX_CRUMBS);
    if skipped > 0 {
        push(out, "…<i>/</i>");
    }
    for (index, step) in ancestors.iter().enumerate().skip(skipped) {
        push(out, "<a href=\"");
        push_up(out, ancestors.len() - index);
        push(out, to_folder);
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
fn push_empty(out: &mut Vec<u8>, has_parent: bool, to_folder: &str) {
    push(out, "<p class=\"empty\"><b>This folder is empty.</b>");
    if has_parent {
        push(out, "<a href=\"../");
        push(out, to_folder);
        push(out, "\">Back to the folder above</a>");
    } else {
        push(out, "Files put here show up on the next visit.");
    }
    push(out, "</p>\n");
}

/// Appends the text that replaces the entries if the filter selects none.
fn push_no_match(out: &mut Vec<u8>, filter: &str, links: &Links<'_>) {
    push(out, "<p class=\"empty\"><b>No name contains “<bdi>");
    push_html(out, filter);
    push(out, "</bdi>”.</b><a href=\"");
    push(out, &links.unfiltered());
    push(out, "\">Show all names</a></p>\n");
}

fn push_table(
    out: &mut Vec<u8>,
    listing: &Listing<'_>,
    entries: &[&ListingEntry],
    has_parent: bool,
    links: &Links<'_>,
) {
    let to_folder = links.to_folder();
    push(
        out,
        "<table class=\"list\">\n<caption class=\"vh\">Files and folders; the column headers sort them</caption>\n<thead><tr>",
    );
    for (sort, title) in [
        (SortKey::Name, "Name"),
        (SortKey::Size, "Size"),
        (SortKey::Time, "Modified<i> (UTC)</i>"),
    ] {
        push_header(out, listing, links, sort, title);
    }
    push(out, "</tr></thead>\n<tbody>\n");
    if has_parent {
        push(out, "<tr><td><a class=\"u\" href=\"../");
        push(out, &to_folder);
        push(out, "\">Folder above</a></td><td></td><td></td></tr>\n");
    }
    for entry in entries {
        push_row(out, entry, &to_folder);
    }
    push(out, "</tbody>\n</table>\n");
}

/// Appends a column header, a link that sorts by this column.
fn push_header(out: &mut Vec<u8>, listing: &Listing<'_>, links: &Links<'_>, sort: SortKey, title: &str) {
    let (is_current, next) = listing.next_order(sort);
    push(out, "<th scope=\"col\"");
    push(
        out,
        match (is_current, listing.order) {
            (false, _) => "",
            (true, SortOrder::Asc) => " aria-sort=\"ascending\"",
            (true, SortOrder::Desc) => " aria-sort=\"descending\"",
        },
    );
    push(out, "><a href=\"");
    push(out, &links.sorted(sort, next));
    push(out, "\">");
    push(out, title);
    push(out, "</a></th>");
}

fn push_row(out: &mut Vec<u8>, entry: &ListingEntry, to_folder: &str) {
    push(out, "<tr data-e><td>");
    if entry.kind == EntryKind::Other {
        push(out, "<span class=\"o\"><bdi>");
    } else {
        push(out, "<a class=\"");
        push(out, entry.icon());
        push(out, "\" href=\"");
        entry.push_href(out);
        if entry.kind == EntryKind::Directory {
            push(out, to_folder);
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
