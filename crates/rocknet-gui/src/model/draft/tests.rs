//! Drafts of a website as the user fills them in.

use super::*;
use rocknet_control::SiteSummary;

fn readable() -> Inspection {
    Inspection {
        exists: true,
        readable: true,
        ..Inspection::default()
    }
}

#[test]
fn names_are_suggested_until_the_user_types_one() {
    let mut websites = Websites::default();
    websites.replace(vec![SiteSummary {
        name: "shop.localhost".to_owned(),
        ..SiteSummary::default()
    }]);
    let mut draft = Draft::default();
    for (folder, expected) in [
        ("/home/me/My Blog!", "my-blog.localhost"),
        ("/home/me/Müller/public/", "mueller.localhost"),
        ("/srv/shop", "shop-2.localhost"),
        ("/", ""),
        ("", ""),
    ] {
        draft.set(FieldId::Folder, folder, &websites);
        assert_eq!(draft.name, expected, "{folder}");
    }
    draft.set(FieldId::Name, " own.test ", &websites);
    draft.set(FieldId::Folder, "/srv/other", &websites);
    assert_eq!(draft.name, "own.test");
}

#[test]
fn dropped_folders_become_paths() {
    for (text, expected) in [
        ("/srv/a", "/srv/a"),
        ("file:///srv/My%20Blog/\r\n", "/srv/My Blog"),
        ("\nfile:///srv/%C3%A4%zz%", "/srv/ä%zz%"),
        ("file:///", "/"),
        ("file:/srv/a", "/srv/a"),
        ("file://localhost/srv/a/", "/srv/a"),
        ("file://desk.example/srv/b", "/srv/b"),
        ("file://desk.example", ""),
        ("# comment\nfile:///srv/c", "/srv/c"),
        ("file.txt", "file.txt"),
        ("", ""),
    ] {
        assert_eq!(dropped(text), expected, "{text:?}");
    }
}

#[test]
fn the_kind_follows_from_the_folder() {
    let websites = Websites::default();
    let php = Inspection {
        has_php: true,
        ..readable()
    };
    let laravel = Inspection {
        is_laravel: true,
        ..php
    };
    let wordpress = Inspection {
        is_wordpress: true,
        ..php
    };
    for (inspection, kind, root) in [
        (readable(), WebsiteKind::Files, "/a"),
        (php, WebsiteKind::Php, "/a"),
        (wordpress, WebsiteKind::WordPress, "/a"),
        (laravel, WebsiteKind::Laravel, "/a/public"),
    ] {
        let mut draft = Draft::default();
        draft.set(FieldId::Folder, "/a", &websites);
        draft.inspect(Path::new("/other"), laravel, &websites);
        assert_eq!(draft.inspection, None);
        draft.inspect(Path::new("/a"), inspection, &websites);
        assert_eq!((draft.kind, draft.served_folder()), (kind, PathBuf::from(root)));
        assert!(draft.is_complete(&websites));
        let has_php = draft.edits().edits.len() == 2;
        assert_eq!(has_php, kind != WebsiteKind::Files);
    }
}

#[test]
fn a_proxy_needs_an_address_only() {
    let websites = Websites::default();
    let mut draft = Draft::default();
    draft.set(FieldId::Kind, "proxy", &websites);
    assert!(!draft.is_complete(&websites));
    draft.find_servers(vec!["http://127.0.0.1:5173".to_owned()], &websites);
    assert_eq!(
        (draft.name.as_str(), draft.is_complete(&websites)),
        ("app-5173.localhost", true)
    );
    let [Edit::Set { path, value }] = &draft.edits().edits[..] else {
        panic!("{:?}", draft.edits())
    };
    assert_eq!(path, &["site", "app-5173.localhost", "proxy"]);
    assert_eq!(value, "\"http://127.0.0.1:5173\"");
}

#[test]
fn findings_are_placed_beside_their_field() {
    let finding = |key: &[&str], is_error| Finding {
        is_error,
        key: key.iter().map(|part| (*part).to_owned()).collect(),
        ..Finding::warning("x", "y")
    };
    let draft = Draft {
        name: "a.test".to_owned(),
        checked: Some(Ok(Checked {
            is_valid: false,
            findings: vec![
                finding(&["site", "a.test", "root"], true),
                finding(&["site", "a.test"], true),
                finding(&["site", "a.test", "php"], true),
                finding(&["site", "a.test", "root"], false),
                finding(&["site", "b.test", "root"], true),
            ],
        })),
        ..Draft::default()
    };
    for field in [FieldId::Folder, FieldId::Name, FieldId::Kind] {
        assert_eq!(draft.findings(field).len(), 1, "{field:?}");
    }
    assert!(draft.findings(FieldId::Address).is_empty());
}
