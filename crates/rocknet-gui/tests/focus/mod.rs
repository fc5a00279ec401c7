//! The focus stays with the user while the contents of the window change.

use std::time::Duration;

use fltk::app;
use fltk::button::Button;
use fltk::group::Group;
use fltk::input::Input;
use fltk::prelude::*;
use fltk::widget::Widget;
use rocknet_gui::act::{Act, FieldId, PageName};
use rocknet_gui::model::{Model, Notice};

use crate::states::online;
use crate::view::window::Window;

/// Checks each case in which the toolkit alone would move the focus to the navigation.
pub fn focus_is_kept(window: &mut Window) {
    a_button_that_is_switched_off_keeps_the_focus(window);
    the_end_of_a_notice_leads_to_the_contents(window);
    a_form_is_left_and_entered_at_the_same_place(window);
    a_shorter_form_is_not_scrolled_past_its_end(window);
}

fn a_button_that_is_switched_off_keeps_the_focus(window: &mut Window) {
    let mut model = online(2, None);
    model.act(Act::Show(PageName::Websites));
    model.act(Act::Select("site-1.localhost".to_owned()));
    window.show(&model);
    let label = model.words().duplicate;
    let mut button = find_button(&window.window.as_group().unwrap(), label).unwrap();
    button.take_focus().unwrap();
    assert!(!model.act(Act::DuplicateSite).is_empty());
    window.show(&model);
    assert!(button.has_focus(), "while the website is being duplicated");
    while window.next_act().is_some() {}
    button.do_callback();
    assert_eq!(window.next_act(), None, "the button cannot be pressed");
}

fn the_end_of_a_notice_leads_to_the_contents(window: &mut Window) {
    let mut model = online(2, None);
    model.act(Act::Show(PageName::Websites));
    model.notice = Some(Notice::new("Removed".to_owned(), false, true, Duration::ZERO));
    window.show(&model);
    let undo = find_button(&window.window.as_group().unwrap(), model.words().undo);
    undo.unwrap().take_focus().unwrap();
    model.notice = None;
    window.show(&model);
    // The navigation is at the left edge. There, Enter would change the page.
    let left = app::focus().map(|widget| widget.x());
    assert!(left.is_some_and(|left| left > 100), "{left:?}");
}

fn a_form_is_left_and_entered_at_the_same_place(window: &mut Window) {
    let mut model = form();
    window.show(&model);
    let mut name = find_input(&window.window.as_group().unwrap(), "shop.test").unwrap();
    name.take_focus().unwrap();
    model.act(Act::Help);
    window.show(&model);
    model.act(Act::Cancel);
    window.show(&model);
    let name = find_input(&window.window.as_group().unwrap(), "shop.test").unwrap();
    assert!(name.has_focus(), "after the list of keys");
}

fn a_shorter_form_is_not_scrolled_past_its_end(window: &mut Window) {
    let mut model = form();
    let size = (window.window.w(), window.window.h());
    window.window.set_size(720, 480);
    window.show(&model);
    let name = model.words().add_website;
    let add = find_button(&window.window.as_group().unwrap(), name);
    // The button below the fold is scrolled into view when it gets the focus.
    let mut cancel = find_button(&window.window.as_group().unwrap(), model.words().cancel).unwrap();
    cancel.take_focus().unwrap();
    window.show(&model);
    assert!(
        cancel.y() + cancel.h() <= 480,
        "{} of {:?}",
        cancel.y(),
        add.map(|add| add.y())
    );
    let first = |window: &Window| find_input(&window.window.as_group().unwrap(), "/srv/shop").unwrap().y();
    assert!(first(window) < 60, "the form is scrolled");
    window.window.set_size(720, 2_000);
    model.act(Act::LeaveField(FieldId::Name));
    window.show(&model);
    window.layout();
    assert!(first(window) > 60, "all of the form is in view");
    window.window.set_size(size.0, size.1);
}

/// Returns a model with the form of a new website that has a folder and a name.
fn form() -> Model {
    let mut model = online(1, None);
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/srv/shop".to_owned()));
    model.act(Act::SetField(FieldId::Name, "shop.test".to_owned()));
    model
}

/// Returns all widgets of a group and of the groups in it.
fn widgets(group: &Group) -> Vec<Widget> {
    let children = (0..group.children()).filter_map(|index| group.child(index));
    children
        .flat_map(|child| {
            let below = child.as_group().map(|group| widgets(&group)).unwrap_or_default();
            std::iter::once(child).chain(below)
        })
        .collect()
}

fn find_button(group: &Group, label: &str) -> Option<Button> {
    let mut all = widgets(group).into_iter();
    let found = all.find(|widget| widget.label() == label && Button::from_dyn_widget(widget).is_some())?;
    Button::from_dyn_widget(&found)
}

fn find_input(group: &Group, text: &str) -> Option<Input> {
    let all = widgets(group).into_iter();
    all.filter_map(|widget| Input::from_dyn_widget(&widget))
        .find(|input| input.value() == text)
}
