//! Editing by keyboard alone, against the real program and the real server: a website in its form, and the
//! configuration as text. Each test types, sees an error, repairs it and saves.

#[path = "desk/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod desk;
#[path = "display/mod.rs"]
mod display;
#[path = "machine/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod machine;
#[path = "desk/served.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod served;

use std::fs;

use desk::{free_port, get, wait};
use rocknet_control::Client;
use rocknet_control::api::Request;
use rocknet_control::config::Change;
use rocknet_gui::theme::LIGHT;
use served::Desk;

/// Title of the question about an edit by another program.
const CONFLICT: &str = "Another program has edited the same";

#[test]
fn a_website_is_edited_in_its_form() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    let form = format!("Edit :{}", desk.port);
    let with_root = |root: &str| desk.text.replace("\"one\"", &format!("\"{root}\""));

    desk.open_form();
    desk.wait_for_error(false);
    keys.type_text("nowhere");
    // The server checks a field that is left.
    keys.press(&["Tab"]);
    desk.wait_for_error(true);
    assert_eq!(desk.file(), desk.text);
    keys.press(&["shift+Tab", "ctrl+a"]);
    keys.type_text("two");
    keys.press(&["Tab"]);
    desk.wait_for_error(false);
    keys.press(&["ctrl+s"]);
    keys.title("Websites");
    assert_eq!(desk.file(), with_root("two"));
    assert!(get(desk.port).ends_with("two"));

    // An edit by hand of another key is merged, and one of the same key asks.
    desk.open_form();
    keys.type_text("three");
    let by_hand = with_root("two").replace("\"low\"", "\"high\"") + "browse = true\n";
    fs::write(&desk.config, &by_hand).unwrap();
    keys.press(&["ctrl+s"]);
    wait("the edits are merged", || {
        keys.press(&["ctrl+s"]);
        (desk.file() == by_hand.replace("\"two\"", "\"three\"")).then_some(())
    });
    desk.open_form();
    keys.type_text("one");
    fs::write(&desk.config, by_hand.replace("\"two\"", "\"./two\"")).unwrap();
    keys.title(CONFLICT);
    // The differences have the focus, so typing answers nothing. The first answer keeps the input.
    keys.press(&["Return", "space", "shift+Tab", "shift+Tab", "Return"]);
    keys.title(&form);
    keys.press(&["ctrl+s"]);
    desk.wait_for_file(&by_hand.replace("\"two\"", "\"one\""));

    // Esc asks before input is lost, and the second answer discards it.
    desk.open_form();
    keys.type_text("x");
    keys.press(&["Escape"]);
    keys.title("Edit website");
    keys.press(&["Tab", "Return"]);
    keys.title("Websites");
    assert_eq!(desk.file(), by_hand.replace("\"two\"", "\"one\""));
}

#[test]
fn shortcuts_work_in_fields_and_type_nothing() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    keys.press(&["ctrl+f"]);
    keys.type_text("zz");
    keys.press(&["ctrl+l"]);
    keys.title("Logs");
    keys.press(&["ctrl+f", "ctrl+n"]);
    keys.title("Add website");
    let (port, folder) = (free_port(), desk.config.with_file_name("two"));
    keys.type_text(&folder.to_string_lossy());
    keys.press(&["ctrl+j", "Tab", "Tab", "Tab", "ctrl+a"]);
    keys.type_text(&format!(":{port}"));
    keys.press(&["ctrl+m", "ctrl+h"]);
    // Enter of the keypad does nothing until the folder was looked into.
    let expected = format!("[site.\":{port}\"]\nroot = \"{}\"\n", folder.display());
    wait("the website is added", || {
        keys.press(&["KP_Enter"]);
        desk.file().contains(&expected).then_some(())
    });
}

#[test]
fn a_conflict_is_not_answered_by_typing() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    desk.open_text();
    keys.press(&["ctrl+End"]);
    keys.type_text("# mine ");
    let by_hand = desk.text.clone() + "# by hand\n";
    fs::write(&desk.config, &by_hand).unwrap();
    wait("the edit is noticed", || {
        keys.type_text(" x ");
        keys.press(&["Return"]);
        keys.shows(CONFLICT).then_some(())
    });
    keys.type_text(" and more ");
    keys.press(&["Return", "space", "ctrl+s", "ctrl+l"]);
    // Leaving asks about the input, and then the first question is there again: it was not answered.
    keys.title("Configuration file");
    keys.press(&["Escape"]);
    keys.title(CONFLICT);
    assert_eq!(desk.file(), by_hand);
    // The second answer shows the file.
    keys.press(&["shift+Tab", "Return"]);
    keys.title("Configuration file");
    keys.press(&["ctrl+End"]);
    keys.type_text("# next");
    let expected = by_hand + "# next";
    wait("the text is saved", || {
        keys.press(&["ctrl+s"]);
        (desk.file() == expected).then_some(())
    });
}

#[test]
fn the_configuration_is_edited_as_text() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    desk.open_text();
    desk.wait_for_error(false);
    keys.press(&["ctrl+End"]);
    keys.type_text("bro");
    // The first proposal is `browse`.
    let before = desk.count(LIGHT.selected).unwrap();
    keys.press(&["ctrl+space"]);
    wait("the proposals are shown", || {
        (desk.count(LIGHT.selected)? > before + 2_000).then_some(())
    });
    keys.press(&["Return"]);
    keys.type_text("maybe");
    desk.wait_for_error(true);
    // A text with an error is refused.
    keys.press(&["ctrl+s"]);
    // The list leads to the line of the error, whose column depends on how much of the line was checked.
    keys.press(&["Home", "Up"]);
    // The edge of the text has another colour while the list has the focus.
    let with_focus = desk.count(LIGHT.edge).unwrap();
    keys.press(&["F6"]);
    wait("the list has the focus", || {
        (desk.count(LIGHT.edge)? > with_focus + 500).then_some(())
    });
    keys.press(&["Return"]);
    wait("the text has the focus", || {
        (desk.count(LIGHT.edge)? < with_focus + 500).then_some(())
    });
    keys.press(&["Home", "shift+End"]);
    keys.type_text("browse = true");
    keys.press(&["Return"]);
    let expected = desk.text.clone() + "browse = true\n";
    wait("the text is saved", || {
        keys.press(&["ctrl+s"]);
        (desk.file() == expected).then_some(())
    });
    let changes: Vec<Change> = Client::connect(&desk.socket)
        .unwrap()
        .call(&Request::ConfigHistory)
        .unwrap();
    assert_eq!(changes.len(), 1, "the refused text has changed nothing");

    // The change is taken back as a whole.
    keys.press(&["Escape"]);
    keys.title("Websites");
    keys.press(&["ctrl+z"]);
    desk.wait_for_file(&desk.text);
}
