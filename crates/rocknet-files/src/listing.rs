//! Directory listings (`browse`): as HTML, or as JSON for programs.

use std::sync::Arc;

use rocknet_blocking::JobError;
use rocknet_config::model::{Browse, ListingView};
use rocknet_handler::response::Response;
use rocknet_io::file;
use rocknet_pages::listing::{
    self, EntryKind, Listing, ListingEntry, MAX_ENTRIES, MAX_README, Query, Readme, View, readme_rank,
};
use rocknet_proto::semantics::negotiation;
use rocknet_proto::status::Status;

use crate::disk_lookup::DiskLookup;
use crate::path_access::PathAccess;
use crate::resolve::{self, Target, logged_status};
use crate::script::NameClass;
use crate::tree::Tree;

/// A rendered listing.
pub struct ListingPage {
    content_type: &'static str,
    policy: &'static str,
    content: Vec<u8>,
}

/// A directory to list.
pub struct ListingRequest {
    /// File tree of the directory.
    pub tree: Arc<Tree>,
    /// Decoded path of the directory in URLs, which the page shows.
    pub path: Arc<str>,
    /// Path of the directory below the root of the tree.
    pub relative: Vec<u8>,
    /// Order, view and filter.
    pub query: Query,
    /// Value of `Accept`, which selects HTML or JSON.
    pub accept: Option<Vec<u8>>,
}

impl ListingRequest {
    /// Lists the directory without dotfiles. `access` decides whether its readme file may be shown. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// Returns the status of the response if the directory cannot be read.
    pub fn list(&self, access: &dyn PathAccess) -> Result<ListingPage, Status> {
        let (tree, relative) = (&self.tree, &self.relative[..]);
        let browse = tree.browse.as_ref().ok_or(Status::NOT_FOUND)?;
        let root = tree.root().map_err(|_| Status::NOT_FOUND)?;
        let found = root
            .list(relative, tree.symlinks, MAX_ENTRIES)
            .map_err(|error| logged_status(&error, tree, relative))?;
        let entries: Vec<ListingEntry> = found
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
        // The result is the index of the preferred type: 1 is JSON.
        let accept = self.accept.as_deref();
        let is_json = accept
            .and_then(|accept| negotiation::preferred_media_type(accept, &["text/html", "application/json"]))
            == Some(1);
        let default_view = default_view(browse);
        let listing = Listing {
            path: &self.path,
            sort: self.query.sort,
            order: self.query.order,
            truncated: found.truncated,
            filter: &self.query.filter,
            view: self.query.view.unwrap_or(default_view),
            default_view,
            offers_zip: browse.zip.is_some(),
            readme: match browse.readme && !is_json {
                true => self.readme(&entries, access),
                false => None,
            },
            entries,
        };
        Ok(if is_json {
            ListingPage {
                content_type: "application/json",
                policy: rocknet_pages::CONTENT_SECURITY_POLICY,
                content: listing::json(&listing),
            }
        } else {
            ListingPage {
                content_type: rocknet_pages::CONTENT_TYPE,
                policy: listing::CONTENT_SECURITY_POLICY,
                content: listing::html(&listing),
            }
        })
    }

    /// Reads the readme file of the directory. Returns `None` if the directory has no readme file, or if a request for
    /// the path of this file would not get it.
    fn readme(&self, entries: &[ListingEntry], access: &dyn PathAccess) -> Option<Readme> {
        let (_, name) = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::File)
            .filter_map(|entry| Some((readme_rank(&entry.name)?, &entry.name)))
            .min()?;
        let path = format!("{}{name}", self.path);
        if NameClass::of(name.as_bytes()) != NameClass::File {
            return None;
        }
        // A route of the file itself may have other settings, but has to lead to the same file.
        let tree = access.tree_at(&path).filter(|tree| tree.is_at_same_place(&self.tree))?;
        let Target::File { opened, relative } = resolve::resolve(&DiskLookup::blocking(), &tree, &path) else {
            return None;
        };
        // A fallback or `try` may lead to another file.
        if !relative.ends_with(name.as_bytes()) {
            return None;
        }
        let bytes = file::read_at_most(&opened.file, MAX_README).ok()?;
        let is_cut = opened.meta.size > bytes.len() as u64;
        // A cut in the middle of a character would show a replacement character.
        let text = match std::str::from_utf8(&bytes) {
            Err(error) if is_cut && error.error_len().is_none() => &bytes[..error.valid_up_to()],
            _ => &bytes[..],
        };
        Some(Readme {
            name: name.clone(),
            text: String::from_utf8_lossy(text).into_owned(),
            is_cut,
        })
    }
}

/// Returns the view of a listing if the request names none.
fn default_view(browse: &Browse) -> View {
    match browse.view {
        ListingView::List => View::List,
        ListingView::Grid => View::Grid,
    }
}

/// Returns 503 for a full or stopped pool, and 500 for a job that panicked.
pub fn status_of(error: &JobError) -> Status {
    match error {
        JobError::Panicked => Status::INTERNAL_SERVER_ERROR,
        JobError::Rejected | JobError::Stopped => Status::SERVICE_UNAVAILABLE,
    }
}

impl ListingPage {
    /// Returns the response.
    pub fn into_response(self) -> Response {
        Response::new(Status::OK)
            .with("Content-Type", self.content_type)
            .with("Content-Security-Policy", self.policy)
            .with("X-Content-Type-Options", "nosniff")
            .with("Cache-Control", "no-cache")
            .with("Vary", "Accept")
            .body(self.content)
    }
}
