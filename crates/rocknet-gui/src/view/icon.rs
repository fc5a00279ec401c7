//! Icon of the window, for the desktop's lists of windows.

use fltk::enums::ColorDepth;
use fltk::image::RgbImage;

/// Width and height in pixels.
pub const SIZE: i32 = 64;

/// The drawing `packaging/gui/rocknet-gui.svg` in this size: red, green, blue and opacity of each pixel. A decoder of
/// pictures would make the program larger.
pub const PIXELS: &[u8] = include_bytes!("../../../../packaging/gui/rocknet-gui-64.rgba");

/// Returns the icon.
pub fn icon() -> Option<RgbImage> {
    RgbImage::new(PIXELS, SIZE, SIZE, ColorDepth::Rgba8).ok()
}
