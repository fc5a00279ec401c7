//! Layout in the smallest window: every widget is inside its parent, no two controls overlap, and labels fit.

use fltk::app;
use fltk::button::Button;
use fltk::draw;
use fltk::group::{Group, Scroll};
use fltk::input::Input;
use fltk::menu::MenuButton;
use fltk::prelude::*;

use crate::view::window::Window;

/// Size of the smallest window.
pub const SMALLEST: (i32, i32) = (720, 480);

/// Smallest width and height of a control in pixels (WCAG 2.2, target size).
const TARGET: i32 = 24;

/// Rectangle of a widget: left, top, right, bottom.
type Edges = (i32, i32, i32, i32);

/// Control that is shown, with its name for messages.
struct Control {
    name: String,
    edges: Edges,
}

/// Fails if the window is not drawn as it should be in its present size.
pub fn check(window: &Window, state: &str) {
    let edges = (0, 0, window.window.w(), window.window.h());
    let mut controls = Vec::new();
    for index in 0..window.window.children() {
        if let Some(child) = window.window.child(index) {
            walk(&child, edges, edges, state, &mut controls);
        }
    }
    assert!(!controls.is_empty(), "{state}: no control is shown");
    for (index, one) in controls.iter().enumerate() {
        for other in &controls[index + 1..] {
            let shared = common(one.edges, other.edges);
            assert!(
                shared.0 >= shared.2 || shared.1 >= shared.3,
                "{state}: {} {:?} covers {} {:?}",
                one.name,
                one.edges,
                other.name,
                other.edges
            );
        }
    }
}

/// Checks a widget and its children. `parent`: edges of the parent. `seen`: the part of the window in which it is seen.
fn walk(widget: &impl WidgetExt, parent: Edges, seen: Edges, state: &str, controls: &mut Vec<Control>) {
    if !widget.visible() {
        return;
    }
    let (x, y) = (widget.x(), widget.y());
    let edges = (x, y, x + widget.w(), y + widget.h());
    let name = format!("`{}`", widget.label());
    assert!(
        edges.0 >= parent.0 && edges.2 <= parent.2 && edges.1 >= parent.1 && edges.3 <= parent.3,
        "{state}: {name} {edges:?} is outside of its parent {parent:?}"
    );
    let seen = common(seen, edges);
    let is_button = Button::from_dyn_widget(widget).is_some();
    if is_button || MenuButton::from_dyn_widget(widget).is_some() || Input::from_dyn_widget(widget).is_some() {
        // A control in a form may be below the lower edge, to which the user scrolls.
        if seen.0 < seen.2 && seen.1 < seen.3 {
            controls.push(Control {
                name: name.clone(),
                edges: seen,
            });
        }
        assert!(
            widget.w() >= TARGET && widget.h() >= TARGET,
            "{state}: {name} {edges:?} is too small"
        );
        if is_button {
            draw::set_font(fltk::enums::Font::Helvetica, 14);
            let room = f64::from(widget.w()) - draw::width(&widget.label());
            assert!(room >= 8.0, "{state}: {name} does not fit: {room}");
        }
        return;
    }
    let Some(group) = widget.as_group() else { return };
    // A form is as high as it needs to be, and scrolls.
    let is_scroll = Scroll::from_dyn_widget(widget).is_some();
    let inside = if is_scroll {
        (edges.0, i32::MIN, edges.2, i32::MAX)
    } else {
        edges
    };
    walk_children(&group, inside, seen, state, controls);
}

fn walk_children(group: &Group, inside: Edges, seen: Edges, state: &str, controls: &mut Vec<Control>) {
    for index in 0..group.children() {
        if let Some(child) = group.child(index) {
            walk(&child, inside, seen, state, controls);
        }
    }
}

fn common(one: Edges, other: Edges) -> Edges {
    (
        one.0.max(other.0),
        one.1.max(other.1),
        one.2.min(other.2),
        one.3.min(other.3),
    )
}

/// Returns the scale of the screen.
pub fn scale() -> f32 {
    app::screen_scale(0)
}
