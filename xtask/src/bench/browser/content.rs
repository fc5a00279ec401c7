//! Creates the page of 60 resources: a document, style sheets, scripts and images.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

const STYLES: u32 = 4;
const SCRIPTS: u32 = 15;
const IMAGES: u32 = 40;
/// Number of resources beside the document.
pub const RESOURCES: usize = (STYLES + SCRIPTS + IMAGES) as usize;
/// Bytes of each script and style sheet before compression.
const TEXT: usize = 60 << 10;
/// Width and height of each image in pixels. An image has 48 KB.
const EDGE: u32 = 128;
/// Folder of the page below the document root.
const FOLDER: &str = "page";
/// Path of the document.
pub const PATH: &str = "/page/index.html";

/// Script that replaces the page by its load times in JSON once everything has loaded.
const REPORT: &str = "<script>addEventListener('load', () => setTimeout(() => {
const n = performance.getEntriesByType('navigation')[0];
const part = e => ({name: e.name.split('/').pop(), protocol: e.nextHopProtocol, blocking: e.renderBlockingStatus == 'blocking',
start: e.startTime, first_byte: e.responseStart, end: e.responseEnd, bytes: e.encodedBodySize});
document.documentElement.textContent = 'times ' + JSON.stringify({parsed: n.domContentLoadedEventEnd, loaded: n.loadEventEnd,
parts: [n, ...performance.getEntriesByType('resource')].map(part)}) + ' end';
}, 0));</script>";

/// Writes the page below the document root `root`.
pub fn create(root: &Path) -> io::Result<()> {
    let folder = &root.join(FOLDER);
    fs::create_dir_all(folder)?;
    let mut page = String::from("<!DOCTYPE html><html><head><title>Page</title>\n");
    for number in 0..STYLES {
        let _ = writeln!(page, "<link rel=stylesheet href={number}.css>");
        fs::write(
            folder.join(format!("{number}.css")),
            words(number, ".", "{color:red}\n"),
        )?;
    }
    page.push_str(REPORT);
    page.push_str("</head><body>\n");
    for number in 0..IMAGES {
        let _ = writeln!(page, "<img src={number}.bmp width=64 height=64>");
        fs::write(folder.join(format!("{number}.bmp")), image(number))?;
    }
    for number in 0..SCRIPTS {
        let _ = writeln!(page, "<script src={number}.js></script>");
        fs::write(
            folder.join(format!("{number}.js")),
            words(100 + number, "var ", "=1;\n"),
        )?;
    }
    page.push_str("</body></html>\n");
    fs::write(folder.join("index.html"), page)
}

/// Returns at least `TEXT` bytes that compress to about a quarter, as scripts do.
fn words(seed: u32, before: &str, after: &str) -> String {
    let mut random = Random(seed);
    let mut text = String::with_capacity(TEXT + 64);
    while text.len() < TEXT {
        let _ = write!(
            text,
            "{before}name{}of{}{after}",
            random.next() % 1000,
            random.next() % 1000
        );
    }
    text
}

/// Returns a bitmap of noise, which does not compress.
fn image(seed: u32) -> Vec<u8> {
    const HEADER: u32 = 54;
    let size = EDGE * EDGE * 3;
    let mut bytes = b"BM".to_vec();
    // The file header and the BITMAPINFOHEADER: file size, reserved, offset of the pixels, size of the info header,
    // width, height, one plane of 24 bits per pixel, no compression, size of the pixels, 2,835 pixels per metre twice,
    // no palette.
    for value in [
        HEADER + size,
        0,
        HEADER,
        40,
        EDGE,
        EDGE,
        1 | 24 << 16,
        0,
        size,
        2835,
        2835,
        0,
        0,
    ] {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    let mut random = Random(1000 + seed);
    bytes.extend((0..size).map(|_| random.next() as u8));
    bytes
}

/// Simple random generator with a fixed seed, so that the page is the same in each run.
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_states_its_length() {
        let image = image(1);
        assert_eq!(image[..2], *b"BM");
        assert_eq!(image[2..6], (image.len() as u32).to_le_bytes());
    }
}
