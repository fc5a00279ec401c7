//! State that all widgets share: the colours, and the queue of the user's acts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use fltk::app;
use fltk::enums::Color;
use rocknet_gui::act::Act;
use rocknet_gui::theme::{Rgb, Theme};

use super::drag::Drag;

/// State that all widgets share. Callbacks only add acts, so that no widget changes while another one is drawn.
pub struct Shared {
    theme: Cell<Theme>,
    acts: RefCell<VecDeque<Act>>,
    /// True from a drop until its text arrives.
    is_dropping: Cell<bool>,
    /// The drag over the window, outside its fields.
    drag: Cell<Drag>,
}

/// Handle of the shared state.
pub type SharedHandle = Rc<Shared>;

impl Shared {
    /// Creates the state with the colours of a theme.
    pub fn new(theme: Theme) -> SharedHandle {
        Rc::new(Shared {
            theme: Cell::new(theme),
            acts: RefCell::default(),
            is_dropping: Cell::new(false),
            drag: Cell::default(),
        })
    }

    /// Returns the colours.
    pub fn theme(&self) -> Theme {
        self.theme.get()
    }

    /// Changes the colours.
    pub fn set_theme(&self, theme: Theme) {
        self.theme.set(theme);
    }

    /// Adds an act of the user.
    pub fn act(&self, act: Act) {
        self.acts.borrow_mut().push_back(act);
        // The loop of the program handles it as soon as the present event is done.
        app::awake();
    }

    /// Notes that the next text is that of a drop.
    pub fn expect_drop(&self) {
        self.is_dropping.set(true);
    }

    /// Ends the wait for the text of a drop. Returns true if there was one.
    pub fn ends_drop(&self) -> bool {
        self.is_dropping.replace(false)
    }

    /// Returns the drag over the window, outside its fields.
    pub fn drag(&self) -> Drag {
        self.drag.get()
    }

    /// Changes the state of the drag.
    pub fn set_drag(&self, drag: Drag) {
        self.drag.set(drag);
    }

    /// Takes the oldest act.
    pub fn next(&self) -> Option<Act> {
        self.acts.borrow_mut().pop_front()
    }
}

/// Gives the colours of a theme to the parts that the toolkit draws by itself, such as menus.
pub fn show_defaults(theme: &Theme) {
    let Theme { card, text, .. } = theme;
    app::background(card.0, card.1, card.2);
    app::background2(card.0, card.1, card.2);
    app::foreground(text.0, text.1, text.2);
}

/// Returns a colour of the toolkit.
pub fn colour(rgb: Rgb) -> Color {
    Color::from_rgb(rgb.0, rgb.1, rgb.2)
}
