//! Grid view of a listing: tiles with the pictures of the folder, which browsers load when they come into view.

use super::format::size;
use super::query::Links;
use super::{EntryKind, Listing, ListingEntry, SortKey, SortOrder, push};
use crate::text::push_html;

/// Maximum size of a file that is shown as a picture, in bytes. The server makes no thumbnails, so a browser loads the
/// whole file for a small tile.
const MAX_PICTURE: u64 = 32 << 20;

/// Extensions of the formats that browsers show.
const PICTURES: [&str; 10] = [
    "apng", "avif", "bmp", "gif", "ico", "jfif", "jpeg", "jpg", "png", "webp",
];

/// Appends the links that sort, and the tiles. `has_parent`: true if the folder is not the top folder.
pub(super) fn push_grid(
    out: &mut Vec<u8>,
    listing: &Listing<'_>,
    entries: &[&ListingEntry],
    has_parent: bool,
    links: &Links<'_>,
) {
    push(out, "<p class=\"order\">Sort by");
    for (sort, title) in [
        (SortKey::Name, "name"),
        (SortKey::Size, "size"),
        (SortKey::Time, "time"),
    ] {
        let (is_current, next) = listing.next_order(sort);
        push(out, " <a href=\"");
        push(out, &links.sorted(sort, next));
        push(out, if is_current { "\" aria-current=\"true\">" } else { "\">" });
        push(out, title);
        if is_current {
            push(
                out,
                if listing.order == SortOrder::Asc {
                    " ↑"
                } else {
                    " ↓"
                },
            );
        }
        push(out, "</a>");
    }
    push(out, "</p>\n<ul class=\"grid\">\n");
    let to_folder = links.to_folder();
    if has_parent {
        push(out, "<li><a class=\"u\" href=\"../");
        push(out, &to_folder);
        push(out, "\"><b>Folder above</b></a></li>\n");
    }
    for entry in entries {
        push_tile(out, entry, &to_folder);
    }
    push(out, "</ul>\n");
}

/// Appends the tile of an entry. `to_folder`: query for the link of a folder, from [`Links::to_folder`].
fn push_tile(out: &mut Vec<u8>, entry: &ListingEntry, to_folder: &str) {
    push(out, "<li data-e>");
    if entry.kind == EntryKind::Other {
        push(out, "<span class=\"o\">");
    } else {
        push(out, "<a class=\"");
        push(out, if is_picture(entry) { "p" } else { entry.icon() });
        push(out, "\" href=\"");
        entry.push_href(out);
        if entry.kind == EntryKind::Directory {
            push(out, to_folder);
        }
        push(out, "\">");
    }
    if is_picture(entry) {
        // The name follows, so the alternative text is empty.
        push(out, "<img alt=\"\" loading=\"lazy\" decoding=\"async\" src=\"");
        entry.push_href(out);
        push(out, "\">");
    }
    push(out, "<b><bdi>");
    push_html(out, &entry.name);
    push(out, "</bdi></b>");
    if entry.kind == EntryKind::File {
        push(out, "<small>");
        push(out, &size(entry.size));
        push(out, "</small>");
    }
    push(
        out,
        if entry.kind == EntryKind::Other {
            "</span></li>\n"
        } else {
            "</a></li>\n"
        },
    );
}

/// Returns true if a browser can show the entry as a picture. SVG images are shown by their icon, because their
/// drawing can take any amount of time.
fn is_picture(entry: &ListingEntry) -> bool {
    let extension = entry.name.rsplit_once('.').map_or("", |(_, extension)| extension);
    entry.kind == EntryKind::File
        && entry.size <= MAX_PICTURE
        && PICTURES.iter().any(|known| known.eq_ignore_ascii_case(extension))
}
