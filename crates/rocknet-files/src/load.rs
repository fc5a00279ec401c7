//! Loads assets from files: reads content, finds precompressed files, and renders heads. The [`DiskLookup`] determines
//! whether a function may block.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rocknet_io::confined_fs::{Meta, OpenedFile};
use rocknet_proto::semantics::date;
use rocknet_proto::semantics::etag::FileTag;
use rocknet_proto::semantics::negotiation::Coding;
use rocknet_proto::status::Status;

use crate::coding::COMPRESS_FROM;
use crate::disk_lookup::DiskLookup;
use crate::entry::{Asset, Content, Entry, FileIdentity, Found, PREFERRED_CODINGS, Variant};
use crate::entry_kind;
use crate::failure_log;
use crate::media_types::FileType;
use crate::resolve::{self, Target};
use crate::tree::Tree;
use rocknet_handler::clock::{MAX_TICK, uptime_ms};
use rocknet_handler::filter::apply_to_head;
use rocknet_handler::fixed;
use rocknet_handler::open_file::OpenFile;
use rocknet_handler::response::{Body, FieldList};
use rocknet_proto::PreparedHeads;

/// Looks up `path` in `tree`. Returns `None` if it leads to the same file or script as `previous`, or if a shortage of
/// resources prevents a check of `previous`. Other results are returned even if they equal `previous`. If the lookup
/// would block ([`DiskLookup::would_block`]), the result is invalid, whether `None` or an entry.
pub fn load(lookup: &DiskLookup, tree: &Tree, path: &str, previous: Option<&Entry>) -> Option<Entry> {
    let now = uptime_ms();
    let target = resolve::resolve(lookup, tree, path);
    let is_fallback = match &target {
        Target::File { relative, .. } => {
            let name = site_path(tree, relative, "");
            entry_kind::is_fallback(name.trim_start_matches('/').as_bytes(), path)
        }
        Target::Script(script) => entry_kind::is_fallback_script(script, path),
        Target::WithoutSlash | Target::Directory { .. } | Target::Failed(_) => false,
    };
    let file = match &target {
        Target::File { relative, .. } => different_path(tree, relative, "", path),
        Target::Directory { relative } => different_path(tree, relative, "/", path),
        Target::Script(script) => (*script.name != *path).then(|| script.name.clone()),
        Target::WithoutSlash | Target::Failed(_) => None,
    };
    let (found, identity) = match target {
        Target::WithoutSlash => (Found::WithoutSlash, Vec::new()),
        Target::Directory { relative } => (Found::Directory { relative }, Vec::new()),
        Target::Script(script) => {
            let is_same = |entry: &Entry| matches!(&entry.found, Found::Script(old) if **old == script);
            if previous.is_some_and(is_same) {
                return None;
            }
            (Found::Script(Arc::new(script)), Vec::new())
        }
        // A shortage says nothing about the file, so the previous entry remains valid until the next lookup.
        Target::Failed(Status::SERVICE_UNAVAILABLE) if previous.is_some() => return None,
        Target::Failed(status) => match error_page(lookup, tree, status) {
            Ok((asset, identity)) => (Found::Asset(Box::new(asset)), identity),
            Err(status) => (Found::Failed(status), Vec::new()),
        },
        Target::File { opened, relative } => {
            let precompressed = precompressed(lookup, tree, &relative, &opened.meta);
            let identity = identity(&opened.meta, &precompressed);
            // A previous lookup may have found the same file as an error page, whose status differs.
            let is_file = |entry: &Entry| matches!(&entry.found, Found::Asset(asset) if asset.status == Status::OK);
            let is_same = |entry: &Entry| entry.identity == identity && entry.file == file && is_file(entry);
            if previous.is_some_and(is_same) {
                return None;
            }
            match asset(lookup, tree, Status::OK, opened, &relative, precompressed, is_fallback) {
                Ok(asset) => (Found::Asset(Box::new(asset)), identity),
                Err(_) if lookup.would_block() => return None,
                Err(error) => {
                    failure_log::unreadable(tree, &relative, &error);
                    (Found::Failed(Status::INTERNAL_SERVER_ERROR), Vec::new())
                }
            }
        }
    };
    let mut entry = Entry::new(found, identity, now);
    entry.is_fallback = is_fallback;
    entry.file = file;
    Some(entry)
}

/// Returns the path of the site for a file or folder, followed by `end`, if it differs from `path`.
fn different_path(tree: &Tree, relative: &[u8], end: &str, path: &str) -> Option<Box<str>> {
    let found = site_path(tree, relative, end);
    (found != path).then(|| found.into())
}

/// Returns the path of the site for a file or folder of the tree, followed by `end`. The path is valid UTF-8, because
/// only such names are looked up.
fn site_path(tree: &Tree, relative: &[u8], end: &str) -> String {
    let name = String::from_utf8_lossy(relative);
    tree.of_site(&match &*name {
        "." => "/".to_owned(),
        name => format!("/{name}{end}"),
    })
}

/// Returns the page for an error: the route's own page, or the plain page.
///
/// # Errors
///
/// Returns `status` if it is a server error, because server errors are not cached, or if the route's own page cannot be
/// read.
fn error_page(lookup: &DiskLookup, tree: &Tree, status: Status) -> Result<(Asset, Vec<FileIdentity>), Status> {
    if status.code() >= 500 {
        return Err(status);
    }
    if let Some((opened, relative)) = tree.route.errors.get(&status.code()).and_then(|path| {
        // If the path of the page is outside of the route's `alias`, the page is a file of the document root, which has
        // a tree of its own.
        let pages = tree.pages().filter(|_| tree.inside(path).is_none());
        resolve::resolve_file(lookup, pages.map_or(tree, |pages| pages), path)
    }) {
        let identity = identity(&opened.meta, &[]);
        // Many paths can have this page, such as all paths without a file.
        let is_shared = true;
        return asset(lookup, tree, status, opened, &relative, Vec::new(), is_shared)
            .map(|asset| (asset, identity))
            .map_err(|_| status);
    }
    let (mut fields, page) = plain_error_page(status);
    // `None`: no request is known, because the page is cached.
    apply_to_head(&tree.filters, &tree.route, None, status, &mut fields);
    let variant = Variant {
        coding: Coding::Identity,
        etag: None,
        full: PreparedHeads::new(status, &fields, page.len() as u64),
        not_modified: None,
        content: Content::Memory(page),
    };
    Ok((
        Asset::new(status, fields, "text/html; charset=utf-8", variant),
        Vec::new(),
    ))
}

/// Returns the plain page for a status. All entries share one copy of the page.
fn plain_error_page(status: Status) -> (FieldList, Bytes) {
    // Contains a page for each status below 500 that a lookup has returned.
    static PAGES: Mutex<BTreeMap<u16, (FieldList, Bytes)>> = Mutex::new(BTreeMap::new());
    let mut pages = PAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let page = pages.entry(status.code()).or_insert_with(|| {
        let response = fixed::error(status);
        let page = match response.body {
            Body::Bytes(page) => page,
            _ => Bytes::new(),
        };
        (response.fields, page)
    });
    page.clone()
}

/// Returns the identities of a file and of its precompressed files.
fn identity(meta: &Meta, precompressed: &[(Coding, OpenedFile)]) -> Vec<FileIdentity> {
    std::iter::once(identity_of(meta))
        .chain(precompressed.iter().map(|(_, opened)| identity_of(&opened.meta)))
        .collect()
}

fn identity_of(meta: &Meta) -> FileIdentity {
    FileIdentity {
        device: meta.device,
        inode: meta.inode,
        size: meta.size,
        modified_ns: meta.modified_ns,
    }
}

/// Finds the precompressed files of a file, such as `x.css.br` for `x.css`. Files older than the original are outdated
/// and ignored.
fn precompressed(lookup: &DiskLookup, tree: &Tree, relative: &[u8], meta: &Meta) -> Vec<(Coding, OpenedFile)> {
    if !tree.route.compress || !tree.types.of_path(relative).compressible {
        return Vec::new();
    }
    let Ok(root) = lookup.root(tree) else { return Vec::new() };
    let mut found = Vec::new();
    for coding in PREFERRED_CODINGS {
        let name = [relative, coding.file_suffix().as_bytes()].concat();
        if let Some(opened) = lookup.open_if_exists(&root, &name, tree.symlinks)
            && opened.meta.kind == rocknet_io::confined_fs::FileKind::File
            && opened.meta.modified_ns >= meta.modified_ns
        {
            found.push((coding, opened));
        }
    }
    found
}

/// Creates the asset of a file. `is_shared` is true if the file is served for many paths, which then share its content.
fn asset(
    lookup: &DiskLookup,
    tree: &Tree,
    status: Status,
    opened: OpenedFile,
    relative: &[u8],
    precompressed: Vec<(Coding, OpenedFile)>,
    is_shared: bool,
) -> std::io::Result<Asset> {
    let media = tree.types.of_path(relative);
    let modified_ns = u64::try_from(opened.meta.modified_ns).unwrap_or(0);
    let seconds = (modified_ns / 1_000_000_000).min(latest_modification());
    let negotiates =
        tree.route.compress && media.compressible && (opened.meta.size >= COMPRESS_FROM || !precompressed.is_empty());
    let fields = fields(&media, (status == Status::OK).then_some(seconds), negotiates);

    // Error pages have no validators.
    let (length, validated) = (opened.meta.size, status == Status::OK);
    let tag = |coding| validated.then(|| FileTag::new(modified_ns, length, coding));
    let content = content(lookup, tree, opened, is_shared)?;
    let plain = variant(tree, status, &fields, Coding::Identity, tag(Coding::Identity), content);
    let mut asset = Asset::new(status, fields, media.value, plain);
    asset.last_modified = (status == Status::OK).then_some(seconds);
    asset.negotiates = negotiates;
    asset.modified_ns = modified_ns;
    for (coding, opened) in precompressed {
        let content = self::content(lookup, tree, opened, is_shared)?;
        let variant = variant(tree, status, &asset.fields, coding, tag(coding), content);
        asset.set_encoded(coding, Some(Box::new(variant)));
        asset.has_precompressed = true;
    }
    Ok(asset)
}

/// Returns the latest time that `Last-Modified` may contain, in seconds since 1970. The field must not be later than
/// the response's `Date` (RFC 9110 §8.8.2.1), which lags by up to a tick of the worker's clock. A file that was
/// unpacked from an archive of another time zone can have a modification time in the future.
fn latest_modification() -> u64 {
    let now = SystemTime::now().checked_sub(MAX_TICK);
    now.and_then(|now| now.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_secs())
}

/// Returns the fields that all variants of a file share. `modified`: time of modification in seconds since 1970; `None`
/// for an error page. `negotiates`: true if the response depends on `Accept-Encoding`.
fn fields(media: &FileType, modified: Option<u64>, negotiates: bool) -> FieldList {
    let mut fields = FieldList::default();
    fields.add("Content-Type", &media.value);
    if let Some(seconds) = modified {
        fields.add("Last-Modified", String::from_utf8_lossy(&date::format(seconds)));
        fields.add("Accept-Ranges", "bytes");
    }
    fields.add("X-Content-Type-Options", "nosniff");
    if media.is_gzip {
        fields.add("Content-Encoding", Coding::Gzip.name());
    }
    if negotiates {
        fields.add("Vary", "Accept-Encoding");
    }
    fields
}

/// Creates a variant of `content`, with its heads rendered from the `shared` fields. Without `etag`, it has no head
/// for a 304 response.
pub fn variant(
    tree: &Tree,
    status: Status,
    shared: &FieldList,
    coding: Coding,
    etag: Option<FileTag>,
    content: Content,
) -> Variant {
    let mut fields = shared.clone();
    if let Some(etag) = &etag {
        fields.add("ETag", String::from_utf8_lossy(etag.as_bytes()));
    }
    // The fields of the 304 response.
    let mut short = fields.clone();
    short.remove("Content-Type");
    short.remove("Accept-Ranges");
    if coding != Coding::Identity {
        fields.add("Content-Encoding", coding.name());
        // Ranges always apply to the plain variant.
        fields.remove("Accept-Ranges");
    }
    // `None`: no request is known, because the heads are cached. Fields with placeholders are left out here.
    apply_to_head(&tree.filters, &tree.route, None, status, &mut fields);
    apply_to_head(&tree.filters, &tree.route, None, status, &mut short);
    Variant {
        coding,
        full: PreparedHeads::new(status, &fields, content.length()),
        not_modified: etag
            .is_some()
            .then(|| PreparedHeads::new(Status::NOT_MODIFIED, &short, 0)),
        etag,
        content,
    }
}

/// Creates a variant from the encoded content of the plain variant.
pub fn coded(tree: &Tree, asset: &Asset, coding: Coding, encoded: Vec<u8>) -> Variant {
    let content = Content::Memory(Bytes::from(encoded));
    variant(tree, asset.status, &asset.fields, coding, asset.tag(coding), content)
}

/// Reads the content of a file, or keeps the file open if it is too large to be cached in memory. `is_shared` is true
/// if the file is served for many paths.
fn content(lookup: &DiskLookup, tree: &Tree, opened: OpenedFile, is_shared: bool) -> std::io::Result<Content> {
    let size = opened.meta.size;
    if size > tree.max_cached_file {
        return Ok(Content::File(Arc::new(OpenFile::new(opened.file, size))));
    }
    let identity = identity_of(&opened.meta);
    if is_shared && let Some(content) = tree.shared_pages.get(&identity) {
        return Ok(Content::Memory(content));
    }
    let content = Bytes::from(lookup.read(opened)?);
    // The content of a file that shrank while it was read does not match the identity.
    if is_shared && content.len() as u64 == size {
        tree.shared_pages.insert(identity, &content);
    }
    Ok(Content::Memory(content))
}
