//! The chooser of folders by keyboard, against the real program and the real server.

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

use desk::{free_port, wait};
use served::Desk;

#[test]
fn a_folder_is_created_and_chosen_by_keyboard() {
    let Some(desk) = Desk::start() else {
        return;
    };
    let keys = &desk.keys;
    let root = desk.config.parent().unwrap();
    keys.press(&["ctrl+n"]);
    keys.title("Add website");
    keys.type_text(&root.join("one").to_string_lossy());
    keys.press(&["Tab", "Return"]);
    // It begins in the folder of the field. Esc goes back to the field, and not further.
    keys.title("Choose a folder");
    keys.press(&["Escape"]);
    keys.title("Add website");
    keys.press(&["Tab", "Return"]);
    keys.title("Choose a folder");
    // The first row of the list is the folder above, and the path follows it.
    keys.press(&["Down", "Return"]);
    keys.press(&["shift+Tab", "shift+Tab", "End"]);
    keys.type_text("shop");
    // The buttons of the heading are before the path: use, create, cancel.
    keys.press(&["shift+Tab", "shift+Tab", "Return"]);
    wait("the folder is created", || root.join("shop").is_dir().then_some(()));
    // The new folder is used once it is listed.
    wait("the folder is chosen", || {
        keys.press(&["ctrl+s"]);
        keys.shows("Add website").then_some(())
    });
    let port = free_port();
    keys.press(&["Tab", "Tab", "Tab", "ctrl+a"]);
    keys.type_text(&format!(":{port}"));
    let expected = format!("[site.\":{port}\"]\nroot = \"{}\"\n", root.join("shop").display());
    wait("the website is added", || {
        keys.press(&["Return"]);
        desk.file().contains(&expected).then_some(())
    });
}
