//! Drag and drop of folders onto the window and its fields.
//!
//! The toolkit would insert the URL of a folder into a field at the pointer, and ignore it elsewhere.

use std::time::{Duration, Instant};

use fltk::app;
use fltk::enums::Event;
use fltk::frame::Frame;
use fltk::prelude::*;
use rocknet_gui::act::Act;

use super::shared::SharedHandle;

/// Time for which the area remains the target after the pointer is reported to have left it.
const LEAVE_GRACE: Duration = Duration::from_millis(500);

/// A drag, as the area of the window sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Drag {
    /// No drag is over the area.
    #[default]
    None,
    /// A drag is over the area.
    Over,
    /// The pointer was reported to have left the area, at this time. The drop may follow.
    Left(Instant),
}

impl Drag {
    /// Returns the state after the pointer is reported to have left the area at `now`.
    fn left(self, now: Instant) -> Drag {
        match self {
            Drag::Over => Drag::Left(now),
            Drag::Left(at) if now.saturating_duration_since(at) < LEAVE_GRACE => self,
            Drag::Left(_) | Drag::None => Drag::None,
        }
    }
}

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
        Event::DndEnter | Event::DndDrag | Event::DndLeave => true,
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
