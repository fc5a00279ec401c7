//! Symbols of the pages, in the colour of the text beside them.

use fltk::enums::ColorDepth;
use fltk::image::RgbImage;
use fltk::prelude::*;
use rocknet_gui::act::PageName;
use rocknet_gui::theme::Rgb;

/// Width and height of a symbol in pixels.
pub const SIZE: i32 = 18;

/// Width and height of a symbol in [`OPACITY`], for screens with twice as many pixels.
pub const DRAWN: usize = 36;

/// The drawing `packaging/gui/symbols.svg` as a row of squares in the order of the navigation: the opacity of each
/// pixel. A decoder of drawings would make the program half a megabyte larger.
pub const OPACITY: &[u8] = include_bytes!("../../../../packaging/gui/symbols.a8");

/// Returns the symbol of a page; `None` if the toolkit cannot make an image of it.
pub fn symbol(page: PageName, Rgb(red, green, blue): Rgb) -> Option<RgbImage> {
    let count = PageName::NAVIGATION.len();
    let place = PageName::NAVIGATION.iter().position(|entry| *entry == page.entry())?;
    let rows = OPACITY.chunks_exact(count * DRAWN);
    let opacity = rows.flat_map(|row| &row[place * DRAWN..(place + 1) * DRAWN]);
    let pixels: Vec<u8> = opacity.flat_map(|opacity| [red, green, blue, *opacity]).collect();
    let side = DRAWN as i32;
    let mut image = RgbImage::new(&pixels, side, side, ColorDepth::Rgba8).ok()?;
    image.scale(SIZE, SIZE, true, true);
    Some(image)
}
