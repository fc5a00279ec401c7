//! Widget that is drawn from a state, which its events change.

use std::cell::RefCell;
use std::rc::Rc;

use fltk::enums::Event;
use fltk::prelude::*;
use fltk::widget::Widget;

use super::shared::SharedHandle;

/// Creates a widget in the present group, with its state. `draw` draws it, and `handle` returns true for an event that
/// it has handled.
pub fn state_widget<S: Default + 'static>(
    shared: &SharedHandle,
    draw: fn(&SharedHandle, &Widget, &S),
    handle: fn(&SharedHandle, &mut Widget, &mut S, Event) -> bool,
) -> (Widget, Rc<RefCell<S>>) {
    let mut widget = Widget::new(0, 0, 100, 100, None);
    let state = Rc::new(RefCell::new(S::default()));
    let (colours, drawn) = (SharedHandle::clone(shared), Rc::clone(&state));
    widget.draw(move |widget| draw(&colours, widget, &drawn.borrow()));
    let (acts, handled) = (SharedHandle::clone(shared), Rc::clone(&state));
    widget.handle(move |widget, event| match handled.try_borrow_mut() {
        Ok(mut state) => handle(&acts, widget, &mut state, event),
        // A click takes the focus, which is an event during an event.
        Err(_) => {
            widget.redraw();
            true
        }
    });
    (widget, state)
}
