//! Directory listings (`browse`): as HTML, or as JSON for programs.

use rocknet_proto::semantics::negotiation;
use rocknet_proto::status::Status;

use crate::resolve::logged_status;
use crate::tree::Tree;
use rocknet_handler::response::Response;
use rocknet_pages::listing::{self, EntryKind, Listing, ListingEntry, MAX_ENTRIES};

/// A rendered listing.
pub struct ListingPage {
    content_type: &'static str,
    content: Vec<u8>,
}

/// Lists the directory at `relative` below the root, without dotfiles. `path` is the path of the directory as shown on
/// the page, `query` selects the order, and `accept` is the value of `Accept`, which selects HTML or JSON. Blocks on
/// the disk.
///
/// # Errors
///
/// Returns the status of the response if the directory cannot be read.
pub fn list(
    tree: &Tree,
    path: &str,
    relative: &[u8],
    query: &[u8],
    accept: Option<&[u8]>,
) -> Result<ListingPage, Status> {
    let root = tree.root().map_err(|_| Status::NOT_FOUND)?;
    let found = root
        .list(relative, tree.symlinks, MAX_ENTRIES)
        .map_err(|error| logged_status(&error, tree, relative))?;
    let (sort, order) = listing::parse_query(query);
    let entries = found
        .entries
        .into_iter()
        .filter_map(|entry| {
            // Names that are not UTF-8 cannot be requested, and dotfiles are not served.
            let name = entry.name.into_string().ok().filter(|name| !name.starts_with('.'))?;
            let kind = match entry.meta.kind {
                rocknet_io::confined_fs::FileKind::File => EntryKind::File,
                rocknet_io::confined_fs::FileKind::Directory => EntryKind::Directory,
            };
            let seconds = entry.meta.modified_ns.div_euclid(1_000_000_000);
            Some(ListingEntry {
                name,
                kind,
                size: entry.meta.size,
                modified_unix: i64::try_from(seconds).ok(),
            })
        })
        .collect();
    let listing = Listing {
        path,
        entries,
        sort,
        order,
        truncated: found.truncated,
    };
    // The result is the index of the preferred type: 1 is JSON.
    let json = accept.and_then(|accept| negotiation::preferred_media_type(accept, &["text/html", "application/json"]))
        == Some(1);
    Ok(if json {
        ListingPage {
            content_type: "application/json",
            content: listing::json(&listing),
        }
    } else {
        ListingPage {
            content_type: rocknet_pages::CONTENT_TYPE,
            content: listing::html(&listing),
        }
    })
}

impl ListingPage {
    /// Returns the response.
    pub fn into_response(self) -> Response {
        Response::new(Status::OK)
            .with("Content-Type", self.content_type)
            .with("Content-Security-Policy", rocknet_pages::CONTENT_SECURITY_POLICY)
            .with("X-Content-Type-Options", "nosniff")
            .with("Cache-Control", "no-cache")
            .with("Vary", "Accept")
            .body(self.content)
    }
}
