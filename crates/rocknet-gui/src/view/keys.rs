//! Shortcuts of the window, which also work while a field has the focus.

use fltk::app;
use fltk::enums::{Event, Key};
use rocknet_gui::act::{Act, PageName};

use super::shared::SharedHandle;

/// Returns the act of a shortcut; `None` if the key has none.
pub fn shortcut(key: Key, with_ctrl: bool) -> Option<Act> {
    let letter = |wanted: char| key == Key::from_char(wanted);
    Some(match key {
        Key::F1 => Act::Help,
        Key::F2 => Act::EditSite,
        Key::F5 => Act::Refresh,
        Key::Delete if !with_ctrl => Act::RemoveSite,
        Key::Escape => Act::Cancel,
        _ if !with_ctrl => return None,
        _ if letter('n') => Act::AddSite,
        _ if letter('f') => Act::FocusFilter,
        _ if letter('s') => Act::Submit,
        _ if letter('e') => Act::EditText,
        _ if letter('l') => Act::ShowSiteLog,
        _ if letter(',') => Act::Show(PageName::Settings),
        _ if letter('z') => Act::Undo,
        _ if letter('q') => Act::Quit,
        _ => return None,
    })
}

/// Handles a key with Ctrl in a field before the toolkit, which would type the control character of some letters.
/// Returns false for keys of the field itself, such as Ctrl+Z.
pub fn press_in_field(shared: &SharedHandle, event: Event) -> bool {
    if event != Event::KeyDown || !app::is_event_ctrl() || app::is_event_alt() {
        return false;
    }
    let key = app::event_key();
    if ['h', 'i', 'j', 'm'].map(Key::from_char).contains(&key) {
        return true;
    }
    if key == Key::from_char('z') {
        return false;
    }
    let act = shortcut(key, true);
    act.map(|act| shared.act(act)).is_some()
}

/// Returns true if the key that was pressed is Enter, beside the letters or on the keypad.
pub fn is_enter() -> bool {
    matches!(app::event_key(), Key::Enter | Key::KPEnter)
}
