//! Drag and drop of folders onto the window and its fields.
//!
//! The toolkit would insert the URL of a folder into a field at the pointer, and ignore it elsewhere.

use std::time::Instant;

use fltk::app;
use fltk::enums::Event;
use fltk::frame::Frame;
use fltk::prelude::*;
use rocknet_gui::act::Act;

use super::drag::Drag;
use super::shared::SharedHandle;

/// Creates the area of the window that takes drops.
pub fn area(shared: &SharedHandle) -> Frame {
    let mut area = Frame::new(0, 0, 1, 1, None);
    let acts = SharedHandle::clone(shared);
    area.handle(move |area, event| {
        match event {
            Event::DndEnter | Event::DndDrag => acts.set_drag(Drag::Over),
            Event::DndLeave | Event::DndRelease => acts.set_drag(Drag::None),
            // A file manager releases the pointer before it sends the drop. The X server then reports that the pointer
            // has entered the window, so that the toolkit would send the drop to the widget above the area.
            Event::Leave => {
                acts.set_drag(acts.drag().left(Instant::now()));
                if acts.drag() != Drag::None {
                    app::set_belowmouse(area);
                }
            }
            _ => {}
        }
        handle(&acts, event)
    });
    area
}

/// Handles the events of a drop. Returns false for other events, and for a text that is no path, which a field inserts.
pub fn handle(shared: &SharedHandle, event: Event) -> bool {
    match event {
        Event::DndDrag => true,
        Event::DndEnter | Event::DndLeave => {
            // The text of an earlier drop is no longer expected.
            shared.ends_drop();
            true
        }
        // A paste that follows a key is not the text of a drop.
        Event::KeyDown => {
            shared.ends_drop();
            false
        }
        Event::DndRelease => {
            shared.expect_drop();
            true
        }
        // The text of a drop arrives as if it was pasted.
        Event::Paste if shared.ends_drop() => {
            let text = app::event_text();
            let is_path = text.starts_with('/') || text.starts_with("file:/");
            if is_path {
                shared.act(Act::Drop(text));
            }
            is_path
        }
        _ => false,
    }
}
