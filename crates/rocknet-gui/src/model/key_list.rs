//! The list of keys (F1): the keyboard shortcuts of the window. It takes the place of the page, whose input stays.

use super::{Effect, Model};
use crate::act::Act;

impl Model {
    /// Carries out an act while the list of keys is shown; `None` for acts that have their usual effect. These close
    /// the list, except for input of the page below it.
    pub(super) fn act_in_key_list(&mut self, act: &Act) -> Option<Vec<Effect>> {
        match act {
            Act::Help | Act::Cancel => self.shown_keys = None,
            Act::Select(key) => self.shown_keys = Some(key.clone()),
            // The page that these are about is not in view.
            Act::OpenRow
            | Act::RemoveSite
            | Act::EditSite
            | Act::Submit
            | Act::Undo
            | Act::Refresh
            | Act::FocusFilter => {}
            act => {
                if !act.is_input() {
                    self.shown_keys = None;
                }
                return None;
            }
        }
        Some(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use crate::act::{Act, FieldId, PageName};
    use crate::job::{Poll, Report};
    use crate::model::{Model, Settings};
    use crate::pages::screen;
    use crate::screen::Body;

    #[test]
    fn the_list_keeps_the_input_below_it() {
        let mut model = Model::new(Settings::default());
        model.report(Report::Connected("/run/s".into()));
        model.report(Report::Polled(Box::<Poll>::default()));
        model.act(Act::AddSite);
        model.act(Act::SetField(FieldId::Name, "a.test".to_owned()));
        model.act(Act::Help);
        let Body::Table(table) = screen(&model).body else {
            panic!("no list")
        };
        assert!(table.rows.len() > 10 && table.rows.iter().all(|row| !row.cells[1].text.is_empty()));
        assert_eq!(model.act(Act::RemoveSite), []);
        model.act(Act::Select("3".to_owned()));
        let Body::Table(table) = screen(&model).body else {
            panic!("no list")
        };
        assert_eq!(table.selected, Some(3));
        model.act(Act::Cancel);
        assert_eq!(model.page, PageName::AddWebsite);
        assert!(model.draft.as_ref().is_some_and(|draft| draft.name == "a.test"));
        model.act(Act::Help);
        model.act(Act::Help);
        assert!(model.shown_keys.is_none());
        // Another page takes its place.
        model.act(Act::Discard);
        model.act(Act::Help);
        model.act(Act::Show(PageName::Logs));
        assert!(model.shown_keys.is_none());
    }
}
