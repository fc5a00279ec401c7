//! Toolbar of a listing: the form that filters names, the views, and the link to the zip archive.

use super::query::{Links, MAX_FILTER};
use super::{Listing, View, push};
use crate::text::push_html;

/// Appends the toolbar. Its form and links work without scripts. [`super::SCRIPT`] filters while the user types.
pub(super) fn push_toolbar(out: &mut Vec<u8>, listing: &Listing<'_>, links: &Links<'_>) {
    push(
        out,
        "<div class=\"bar\"><form role=\"search\"><input type=\"search\" name=\"filter\" value=\"",
    );
    push_html(out, listing.filter);
    push(
        out,
        "\" placeholder=\"Filter names\" aria-label=\"Filter names\" maxlength=\"",
    );
    push(out, &MAX_FILTER.to_string());
    push(out, "\" autocomplete=\"off\" spellcheck=\"false\">");
    for (name, value) in links.kept() {
        push(out, "<input type=\"hidden\" name=\"");
        push(out, name);
        push(out, "\" value=\"");
        push(out, &value);
        push(out, "\">");
    }
    push(
        out,
        "<button>Filter</button> <output></output></form>\n<nav aria-label=\"Views\">",
    );
    for (view, title) in [(View::List, "List"), (View::Grid, "Grid")] {
        push(out, "<a href=\"");
        push(out, &links.viewed(view));
        push(
            out,
            if view == listing.view {
                "\" aria-current=\"true\">"
            } else {
                "\">"
            },
        );
        push(out, title);
        push(out, "</a>");
    }
    if listing.offers_zip {
        push(out, "<a href=\"?zip\" rel=\"nofollow\" download>Download as zip</a>");
    }
    push(out, "</nav></div>\n");
}
