//! The chooser as the user types, and as the worker reports folders.

use super::*;
use crate::act::{Act, FieldId, PageName};
use crate::job::{Poll, Report};
use crate::model::{Effect, Model, Settings};

fn listing(path: &str, folders: &[&str]) -> Result<Listing, FolderTrouble> {
    Ok(Listing {
        path: path.into(),
        folders: folders.iter().map(|name| (*name).to_owned()).collect(),
        left_out: 0,
    })
}

/// Returns a model with the chooser open at the folder `/srv/missing`, with the folders of `/srv`.
fn opened() -> Model {
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/control.sock".into()));
    model.report(Report::Polled(Box::<Poll>::default()));
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/srv/missing".to_owned()));
    assert_eq!(model.act(Act::ChooseFolder), list("/srv/missing"));
    let missing = Report::Listed("/srv/missing".into(), Err(FolderTrouble::Missing));
    assert_eq!(model.report(missing), list("/srv"));
    let folders = ["Web", "web-old", ".git", "data"];
    assert_eq!(
        model.report(Report::Listed("/srv".into(), listing("/srv", &folders))),
        []
    );
    model
}

fn list(folder: &str) -> Vec<Effect> {
    vec![Effect::Job(Job::ListFolder(folder.into()))]
}

fn chooser(model: &Model) -> &FolderChooser {
    model.chooser.as_ref().unwrap()
}

fn type_path(model: &mut Model, path: &str) -> Vec<Effect> {
    model.act(Act::SetField(FieldId::ChooserPath, path.to_owned()))
}

#[test]
fn the_chooser_begins_at_the_folder_of_the_field() {
    let model = opened();
    assert_eq!(
        (&*chooser(&model).path, chooser(&model).chosen().as_deref()),
        ("/srv/", Some("/srv"))
    );
    assert_eq!(chooser(&model).matching(), ["Web", "web-old", "data"]);
    // Without a folder, it begins in the home folder, whose path the worker knows.
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/control.sock".into()));
    model.act(Act::AddSite);
    assert_eq!(model.act(Act::ChooseFolder), list(""));
    model.report(Report::Listed("".into(), listing("/home/me", &["site"])));
    assert_eq!(chooser(&model).path, "/home/me/");
    assert_eq!(type_path(&mut model, "/home/me/s"), []);
    assert_eq!(chooser(&model).matching(), ["site"]);
}

#[test]
fn typing_selects_folders_and_lists_others() {
    let mut model = opened();
    assert_eq!(type_path(&mut model, "/srv/we"), []);
    assert_eq!(chooser(&model).matching(), ["Web", "web-old"]);
    assert_eq!((chooser(&model).chosen(), chooser(&model).is_new()), (None, true));
    // Enter does nothing while several folders begin so. Their common letters differ in case already.
    assert_eq!(model.act(Act::Submit), []);
    assert_eq!(model.act(Act::CompletePath), []);
    assert_eq!(chooser(&model).path, "/srv/we");
    assert_eq!(type_path(&mut model, "/srv/d"), []);
    assert_eq!(model.act(Act::CompletePath), list("/srv/data"));
    assert_eq!(chooser(&model).path, "/srv/data/");
    // A list that arrives late is out of date.
    assert_eq!(type_path(&mut model, "/etc/"), list("/etc/"));
    model.report(Report::Listed("/srv/data".into(), listing("/srv/data", &["a"])));
    assert_eq!(chooser(&model).listed, None);
    model.report(Report::Listed("/etc/".into(), Err(FolderTrouble::Denied)));
    assert_eq!((chooser(&model).chosen(), chooser(&model).is_new()), (None, false));
    // A path that is not absolute has no folders.
    assert_eq!(type_path(&mut model, "etc"), []);
    assert!(chooser(&model).matching().is_empty() && chooser(&model).chosen().is_none());
}

#[test]
fn rows_are_opened_and_used() {
    let mut model = opened();
    model.act(Act::Select("data".to_owned()));
    assert_eq!(model.act(Act::OpenRow), list("/srv/data"));
    model.report(Report::Listed("/srv/data".into(), listing("/srv/data", &[".x"])));
    assert!(chooser(&model).matching().is_empty());
    model.act(Act::SetField(FieldId::HiddenFolders, "true".to_owned()));
    assert_eq!(chooser(&model).matching(), [".x"]);
    model.act(Act::Select(PARENT.to_owned()));
    assert_eq!(model.act(Act::OpenRow), list("/srv"));
    model.act(Act::Cancel);
    assert!(model.chooser.is_none() && model.page == PageName::AddWebsite);

    let mut model = opened();
    let used = model.act(Act::UseFolder);
    assert_eq!(used, [Effect::Job(Job::Inspect("/srv".into()))]);
    assert!(model.chooser.is_none() && model.draft.as_ref().is_some_and(|draft| draft.folder == "/srv"));
}

#[test]
fn a_folder_is_created() {
    let mut model = opened();
    model.act(Act::NewFolder);
    let path = format!("/srv/{}", model.words().new_folder_name);
    assert_eq!((&*chooser(&model).path, chooser(&model).focus), (&*path, 2));
    type_path(&mut model, "/srv/shop");
    let created = model.act(Act::NewFolder);
    assert_eq!(created, [Effect::Job(Job::CreateFolder("/srv/shop".into()))]);
    model.report(Report::FolderCreated("/srv/shop".into(), Err(FolderTrouble::Denied)));
    assert_eq!(chooser(&model).failure, Some(FolderTrouble::Denied));
    assert_eq!(
        model.report(Report::FolderCreated("/srv/shop".into(), Ok(()))),
        list("/srv/shop")
    );
    model.report(Report::Listed("/srv/shop".into(), listing("/srv/shop", &[])));
    assert_eq!(chooser(&model).chosen().as_deref(), Some("/srv/shop"));
}

#[test]
fn many_folders_are_bounded() {
    let mut model = opened();
    let many: Vec<String> = (0..MAX_SHOWN + 3).map(|number| format!("f{number}")).collect();
    let found = Listing {
        path: "/srv".into(),
        folders: many,
        left_out: 4,
    };
    model.report(Report::Listed("/srv".into(), Ok(found)));
    let (shown, left_out) = chooser(&model).shown();
    assert_eq!((shown.len(), left_out), (MAX_SHOWN, 7));
}

#[test]
fn a_folder_that_does_not_reply_keeps_nothing_else_from_being_chosen() {
    let mut model = Model::new(Settings::default());
    model.report(Report::Connected("/run/control.sock".into()));
    model.act(Act::AddSite);
    model.act(Act::SetField(FieldId::Folder, "/net/shop".to_owned()));
    model.act(Act::ChooseFolder);
    model.report(Report::Listed("/net/shop".into(), Err(FolderTrouble::Waiting)));
    // The result follows, and may lead to the folder above.
    let missing = Report::Listed("/net/shop".into(), Err(FolderTrouble::Missing));
    assert_eq!(model.report(missing), list("/net"));
    model.report(Report::Listed("/net".into(), Err(FolderTrouble::Waiting)));
    assert_eq!((chooser(&model).chosen(), chooser(&model).is_new()), (None, false));
    model.act(Act::Select(PARENT.to_owned()));
    assert_eq!(model.act(Act::OpenRow), list("/"));
    // Letters do not begin another look while this one goes on, but repeat one that was not tried.
    model.report(Report::Listed("/".into(), Err(FolderTrouble::Waiting)));
    assert_eq!(type_path(&mut model, "/s"), []);
    model.report(Report::Listed("/".into(), Err(FolderTrouble::NotTried)));
    assert_eq!(type_path(&mut model, "/sr"), list("/"));
    assert_eq!(chooser(&model).listed, None);
}

#[test]
fn a_folder_that_is_created_late_does_not_disturb_another_one() {
    let mut model = opened();
    type_path(&mut model, "/srv/shop");
    model.act(Act::NewFolder);
    let created = |result| Report::FolderCreated("/srv/shop".into(), result);
    model.report(created(Err(FolderTrouble::Waiting)));
    assert_eq!(chooser(&model).failure, Some(FolderTrouble::Waiting));
    type_path(&mut model, "/srv/data");
    model.report(created(Err(FolderTrouble::Denied)));
    assert_eq!(chooser(&model).failure, None);
    assert_eq!(model.report(created(Ok(()))), []);
    assert_eq!(chooser(&model).path, "/srv/data");
}
