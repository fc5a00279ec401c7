//! Media types of files by their extension.
//!
//! Values of `text/*` have `; charset=utf-8`, because browsers otherwise guess the charset from their locale. JSON has
//! no such parameter (RFC 8259 §11). XML types have no charset in the table either, because it would override the
//! encoding declaration of the document (RFC 7303 §3).

/// A media type from the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MediaType {
    /// Value of `Content-Type`.
    pub value: &'static str,
    /// True if files of this type are worth compressing: text, and binary formats that [`is_compressible`] accepts.
    pub compressible: bool,
}

impl MediaType {
    /// Type of files with an unknown extension. Browsers save such files and never execute them.
    pub const DEFAULT: MediaType = MediaType {
        value: "application/octet-stream",
        compressible: false,
    };

    /// Returns the type of an extension. The extension has no dot and may be in upper or lower case.
    pub fn of_extension(extension: &str) -> MediaType {
        let mut lowered = [0; MAX_EXTENSION];
        let Some(lowered) = lowered.get_mut(..extension.len()) else {
            return MediaType::DEFAULT;
        };
        lowered.copy_from_slice(extension.as_bytes());
        lowered.make_ascii_lowercase();
        match TYPES.binary_search_by(|(known, _)| known.as_bytes().cmp(lowered)) {
            Ok(index) => TYPES[index].1,
            Err(_) => MediaType::DEFAULT,
        }
    }

    /// Returns the type of a file name, by the extension after its last dot.
    pub fn of_name(name: &str) -> MediaType {
        name.rsplit_once('.')
            .map_or(MediaType::DEFAULT, |(_, extension)| MediaType::of_extension(extension))
    }
}

/// Returns true if a body of this `Content-Type` is worth compressing: text, text-based formats, and a few binary
/// formats without compression of their own. `text/event-stream` is excluded.
pub fn is_compressible(content_type: &[u8]) -> bool {
    let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    let essence = super::list::trim(&content_type[..end]);
    let begins = |prefix: &[u8]| {
        essence
            .get(..prefix.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let ends = |suffix: &[u8]| {
        essence.len() > suffix.len() && essence[essence.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
    };
    // Events are sent one by one and must not wait in the buffer of a compressor.
    if essence.eq_ignore_ascii_case(b"text/event-stream") {
        return false;
    }
    begins(b"text/")
        || ends(b"+json")
        || ends(b"+xml")
        || OTHER_COMPRESSIBLE.iter().any(|t| essence.eq_ignore_ascii_case(t))
}

/// Compressible types that neither begin with `text/` nor end with `+json` or `+xml`.
const OTHER_COMPRESSIBLE: [&[u8]; 26] = [
    b"application/ecmascript",
    b"application/eps",
    b"application/graphql",
    b"application/javascript",
    b"application/json",
    b"application/json5",
    b"application/postscript",
    b"application/rtf",
    b"application/sql",
    b"application/toml",
    b"application/vnd.apple.mpegurl",
    b"application/vnd.ms-fontobject",
    b"application/wasm",
    b"application/x-httpd-php",
    b"application/x-javascript",
    b"application/x-ndjson",
    b"application/x-sh",
    b"application/x-tar",
    b"application/xml",
    b"application/xml-dtd",
    b"application/yaml",
    b"font/otf",
    b"font/ttf",
    b"image/bmp",
    b"image/x-icon",
    b"model/obj",
];

/// Size of the buffer for an extension in lower case, in bytes: more than any extension in the table needs.
const MAX_EXTENSION: usize = 16;

/// Creates a table row for a type that [`is_compressible`] accepts.
const fn plain(extension: &'static str, value: &'static str) -> (&'static str, MediaType) {
    (
        extension,
        MediaType {
            value,
            compressible: true,
        },
    )
}

/// Creates a table row for a type that [`is_compressible`] rejects, or for `svgz`, whose files are SVG in gzip. Most of
/// these formats are compressed already.
const fn packed(extension: &'static str, value: &'static str) -> (&'static str, MediaType) {
    (
        extension,
        MediaType {
            value,
            compressible: false,
        },
    )
}

/// Types by extension, sorted by extension. They come from the IANA registry, from WHATWG MIME Sniffing, or from common
/// use. If an extension has two meanings, the table has the one that web sites use: `ts` is a stream segment, not
/// TypeScript.
#[rustfmt::skip]
static TYPES: [(&str, MediaType); 171] = [
    packed("3g2", "video/3gpp2"),
    packed("3gp", "video/3gpp"),
    packed("7z", "application/x-7z-compressed"),
    packed("aac", "audio/aac"),
    plain("ai", "application/postscript"),
    packed("apk", "application/vnd.android.package-archive"),
    packed("apng", "image/apng"),
    plain("appcache", "text/cache-manifest; charset=utf-8"),
    plain("atom", "application/atom+xml"),
    packed("avi", "video/x-msvideo"),
    packed("avif", "image/avif"),
    plain("bmp", "image/bmp"),
    packed("bz2", "application/x-bzip2"),
    plain("c", "text/plain; charset=utf-8"),
    packed("cab", "application/vnd.ms-cab-compressed"),
    packed("cer", "application/pkix-cert"),
    plain("cfg", "text/plain; charset=utf-8"),
    plain("cjs", "text/javascript; charset=utf-8"),
    plain("conf", "text/plain; charset=utf-8"),
    plain("cpp", "text/plain; charset=utf-8"),
    packed("crl", "application/pkix-crl"),
    packed("crt", "application/x-x509-ca-cert"),
    plain("css", "text/css; charset=utf-8"),
    plain("csv", "text/csv; charset=utf-8"),
    plain("cur", "image/x-icon"),
    packed("deb", "application/vnd.debian.binary-package"),
    plain("diff", "text/plain; charset=utf-8"),
    packed("dmg", "application/x-apple-diskimage"),
    packed("doc", "application/msword"),
    packed("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    plain("dtd", "application/xml-dtd"),
    packed("ear", "application/java-archive"),
    plain("eot", "application/vnd.ms-fontobject"),
    plain("eps", "application/postscript"),
    packed("epub", "application/epub+zip"),
    packed("flac", "audio/flac"),
    packed("flv", "video/x-flv"),
    plain("geojson", "application/geo+json"),
    packed("gif", "image/gif"),
    packed("glb", "model/gltf-binary"),
    plain("gltf", "model/gltf+json"),
    plain("gpx", "application/gpx+xml"),
    plain("gql", "application/graphql"),
    plain("graphql", "application/graphql"),
    packed("gz", "application/gzip"),
    plain("h", "text/plain; charset=utf-8"),
    packed("heic", "image/heic"),
    packed("heif", "image/heif"),
    plain("htm", "text/html; charset=utf-8"),
    plain("html", "text/html; charset=utf-8"),
    plain("ico", "image/x-icon"),
    plain("ics", "text/calendar; charset=utf-8"),
    plain("ini", "text/plain; charset=utf-8"),
    packed("jar", "application/java-archive"),
    plain("java", "text/plain; charset=utf-8"),
    packed("jp2", "image/jp2"),
    packed("jpe", "image/jpeg"),
    packed("jpeg", "image/jpeg"),
    packed("jpg", "image/jpeg"),
    plain("js", "text/javascript; charset=utf-8"),
    plain("json", "application/json"),
    plain("json5", "application/json5"),
    plain("jsonl", "application/x-ndjson"),
    plain("jsonld", "application/ld+json"),
    plain("jsx", "text/javascript; charset=utf-8"),
    packed("jxl", "image/jxl"),
    plain("kml", "application/vnd.google-earth.kml+xml"),
    packed("kmz", "application/vnd.google-earth.kmz"),
    plain("log", "text/plain; charset=utf-8"),
    plain("lua", "text/plain; charset=utf-8"),
    plain("m3u8", "application/vnd.apple.mpegurl"),
    packed("m4a", "audio/mp4"),
    packed("m4s", "video/iso.segment"),
    packed("m4v", "video/mp4"),
    plain("map", "application/json"),
    plain("markdown", "text/markdown; charset=utf-8"),
    plain("mathml", "application/mathml+xml"),
    plain("md", "text/markdown; charset=utf-8"),
    packed("mid", "audio/midi"),
    packed("midi", "audio/midi"),
    plain("mjs", "text/javascript; charset=utf-8"),
    packed("mka", "audio/matroska"),
    packed("mkv", "video/matroska"),
    plain("mml", "application/mathml+xml"),
    packed("mov", "video/quicktime"),
    packed("mp3", "audio/mpeg"),
    packed("mp4", "video/mp4"),
    plain("mpd", "application/dash+xml"),
    packed("mpeg", "video/mpeg"),
    packed("mpg", "video/mpeg"),
    packed("msix", "application/msix"),
    plain("ndjson", "application/x-ndjson"),
    plain("obj", "model/obj"),
    packed("odp", "application/vnd.oasis.opendocument.presentation"),
    packed("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    packed("odt", "application/vnd.oasis.opendocument.text"),
    packed("oga", "audio/ogg"),
    packed("ogg", "audio/ogg"),
    packed("ogv", "video/ogg"),
    plain("opml", "text/x-opml; charset=utf-8"),
    packed("opus", "audio/ogg"),
    plain("otf", "font/otf"),
    packed("p12", "application/x-pkcs12"),
    plain("patch", "text/plain; charset=utf-8"),
    packed("pdf", "application/pdf"),
    packed("pem", "application/x-pem-file"),
    packed("png", "image/png"),
    packed("ppt", "application/vnd.ms-powerpoint"),
    packed("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    plain("ps", "application/postscript"),
    plain("py", "text/plain; charset=utf-8"),
    packed("rar", "application/vnd.rar"),
    plain("rb", "text/plain; charset=utf-8"),
    plain("rdf", "application/rdf+xml"),
    packed("rpm", "application/x-rpm"),
    plain("rs", "text/plain; charset=utf-8"),
    plain("rss", "application/rss+xml"),
    plain("rst", "text/plain; charset=utf-8"),
    plain("rtf", "application/rtf"),
    plain("sass", "text/plain; charset=utf-8"),
    plain("scss", "text/plain; charset=utf-8"),
    plain("sh", "application/x-sh"),
    plain("shtml", "text/html; charset=utf-8"),
    plain("sql", "application/sql"),
    plain("srt", "text/plain; charset=utf-8"),
    packed("stl", "model/stl"),
    plain("svg", "image/svg+xml"),
    packed("svgz", "image/svg+xml"),
    packed("swf", "application/vnd.adobe.flash.movie"),
    plain("tar", "application/x-tar"),
    packed("tbz2", "application/x-bzip2"),
    plain("text", "text/plain; charset=utf-8"),
    packed("tgz", "application/gzip"),
    packed("tif", "image/tiff"),
    packed("tiff", "image/tiff"),
    plain("toml", "application/toml"),
    packed("torrent", "application/x-bittorrent"),
    packed("ts", "video/mp2t"),
    plain("tsv", "text/tab-separated-values; charset=utf-8"),
    plain("tsx", "text/plain; charset=utf-8"),
    packed("ttc", "font/collection"),
    plain("ttf", "font/ttf"),
    plain("txt", "text/plain; charset=utf-8"),
    packed("usdz", "model/vnd.usdz+zip"),
    plain("vcf", "text/vcard; charset=utf-8"),
    plain("vtt", "text/vtt; charset=utf-8"),
    plain("vue", "text/plain; charset=utf-8"),
    packed("war", "application/java-archive"),
    plain("wasm", "application/wasm"),
    packed("wav", "audio/wav"),
    packed("weba", "audio/webm"),
    packed("webm", "video/webm"),
    plain("webmanifest", "application/manifest+json"),
    packed("webp", "image/webp"),
    packed("whl", "application/zip"),
    packed("woff", "font/woff"),
    packed("woff2", "font/woff2"),
    plain("xht", "application/xhtml+xml"),
    plain("xhtml", "application/xhtml+xml"),
    packed("xls", "application/vnd.ms-excel"),
    packed("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    plain("xml", "application/xml"),
    packed("xpi", "application/x-xpinstall"),
    plain("xsd", "application/xml"),
    plain("xsl", "application/xslt+xml"),
    plain("xslt", "application/xslt+xml"),
    packed("xz", "application/x-xz"),
    plain("yaml", "application/yaml"),
    plain("yml", "application/yaml"),
    packed("zip", "application/zip"),
    packed("zst", "application/zstd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_consistent() {
        for pair in TYPES.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{} before {}", pair[0].0, pair[1].0);
        }
        for (extension, media_type) in TYPES {
            let MediaType { value, compressible } = media_type;
            assert!(extension.len() <= MAX_EXTENSION, "{extension}");
            assert!(
                extension.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()),
                "{extension}"
            );
            assert_eq!(
                value.starts_with("text/"),
                value.ends_with("; charset=utf-8"),
                "{extension}"
            );
            // The files of `svgz` are compressed already.
            let expected = is_compressible(value.as_bytes()) && extension != "svgz";
            assert_eq!(compressible, expected, "{extension}");
        }
    }

    #[test]
    fn extensions_have_media_types() {
        // Extension, its media type, and true if the type is compressible.
        let rows: &[(&str, &str, bool)] = &[
            ("html", "text/html; charset=utf-8", true),
            ("HTM", "text/html; charset=utf-8", true),
            ("js", "text/javascript; charset=utf-8", true),
            ("mjs", "text/javascript; charset=utf-8", true),
            ("css", "text/css; charset=utf-8", true),
            ("json", "application/json", true),
            ("map", "application/json", true),
            ("svg", "image/svg+xml", true),
            ("xml", "application/xml", true),
            ("wasm", "application/wasm", true),
            ("webmanifest", "application/manifest+json", true),
            ("ico", "image/x-icon", true),
            ("JPG", "image/jpeg", false),
            ("woff2", "font/woff2", false),
            ("ttf", "font/ttf", true),
            ("mp4", "video/mp4", false),
            ("mkv", "video/matroska", false),
            ("zip", "application/zip", false),
            ("7z", "application/x-7z-compressed", false),
            ("", "application/octet-stream", false),
            ("unknown", "application/octet-stream", false),
            ("an-extension-longer-than-the-buffer", "application/octet-stream", false),
            ("html\0", "application/octet-stream", false),
        ];
        for &(extension, value, compressible) in rows {
            assert_eq!(
                MediaType::of_extension(extension),
                MediaType { value, compressible },
                "{extension}"
            );
        }
    }

    #[test]
    fn the_last_extension_of_a_name_decides() {
        // File name, and its media type.
        let rows: &[(&str, &str)] = &[
            ("index.html", "text/html; charset=utf-8"),
            ("archive.tar.gz", "application/gzip"),
            ("README", "application/octet-stream"),
            ("trailing.", "application/octet-stream"),
            ("html", "application/octet-stream"),
            ("", "application/octet-stream"),
        ];
        for &(name, value) in rows {
            assert_eq!(MediaType::of_name(name).value, value, "{name}");
        }
    }

    #[test]
    fn text_based_types_are_compressible() {
        // Value of Content-Type, and true if the body is worth compressing.
        let rows: &[(&str, bool)] = &[
            ("TEXT/HTML;charset=utf-8", true),
            ("text/plain", true),
            ("application/json ; charset=utf-8", true),
            ("application/problem+json", true),
            ("image/svg+xml", true),
            ("text/event-stream", false),
            ("image/png", false),
            ("application/zip", false),
            ("application/jsonp-is-not-json", false),
            ("+json", false),
            ("", false),
            (";", false),
        ];
        for &(content_type, expected) in rows {
            assert_eq!(is_compressible(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}
