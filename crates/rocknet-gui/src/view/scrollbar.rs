//! Scroll bars in the style of the window: a round thumb, without arrows.

use fltk::app;
use fltk::draw;
use fltk::enums::{Color, FrameType};
use fltk::prelude::*;
use fltk::valuator::Scrollbar;
use rocknet_gui::theme::{Rgb, Theme};

use super::shared::colour;

/// Width in pixels.
pub const WIDTH: i32 = 10;

/// Frame of the thumb, and the frame that the toolkit uses while it is pressed. No other widget has them.
const THUMB: FrameType = FrameType::PlasticUpBox;
const PRESSED_THUMB: FrameType = FrameType::PlasticDownBox;

/// Registers the drawing of thumbs with the toolkit. Called once.
pub fn prepare() {
    for frame in [THUMB, PRESSED_THUMB] {
        app::set_frame_type_cb(frame, draw_thumb, 0, 0, 0, 0);
    }
}

/// Gives a scroll bar the colours of the theme. `ground`: colour of the surface below it.
pub fn show(bar: &mut Scrollbar, theme: &Theme, ground: Rgb) {
    bar.set_frame(FrameType::FlatBox);
    bar.set_slider_frame(THUMB);
    bar.set_color(colour(ground));
    bar.set_selection_color(colour(theme.edge));
    // The arrows have the colour of the ground, so they are not seen.
    bar.set_label_color(colour(ground));
}

fn draw_thumb(x: i32, y: i32, w: i32, h: i32, color: Color) {
    // The toolkit draws the squares of the arrows with the same frame.
    if w == h {
        return;
    }
    draw::set_draw_color(color);
    draw::draw_rounded_rectf(x + 2, y + 2, w - 4, h - 4, (w.min(h) - 4) / 2);
}
