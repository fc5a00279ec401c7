//! Edits of the window and edits by hand, in a random order from fixed seeds, against the real server: comments, order,
//! and keys that the form does not know stay as they are.

#[path = "desk/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod desk;
#[path = "golden/mod.rs"]
mod golden;
#[path = "machine/mod.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod machine;

use std::collections::BTreeMap;

use golden::config::{Block, beside, blocks, comments};
use golden::driver::Driver;
use golden::random::Random;
use rocknet_gui::act::{Act, FieldId};
use rocknet_gui::model::WebsiteKind;

/// Seeds of the orders, each with a server of its own.
const SEEDS: [u64; 3] = [1, 4, 0x5eed];

/// Number of edits of each order.
const STEPS: usize = 90;

#[test]
fn edits_of_the_window_keep_what_was_written_by_hand() {
    let Some(program) = machine::program() else {
        return;
    };
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in SEEDS {
        let mut run = Run {
            driver: Driver::start(&program),
            random: Random::new(seed),
            number: 0,
            sites: Vec::new(),
        };
        run.driver.refresh();
        run.sites = run.driver.names();
        for step in 0..STEPS {
            let before = run.driver.texts();
            if run.random.one_in(4) {
                let is_written = run.edit_by_hand();
                *done.entry("by hand").or_default() += usize::from(is_written);
                continue;
            }
            let (name, rule) = run.edit_in_window();
            let after = run.driver.texts();
            let Some(rule) = rule else {
                assert_eq!(before, after, "seed {seed}, step {step}: {name} was refused");
                continue;
            };
            let changed = before.iter().filter(|(file, before)| after[*file] != **before).count();
            let expected = if name == "undo" { 0..=1 } else { 1..=1 };
            assert!(
                expected.contains(&changed),
                "seed {seed}, step {step}: {name} has changed {changed} files"
            );
            for (file, before) in &before {
                let what = format!("seed {seed}, step {step}: {name} in {file}\n--- before\n{before}\n--- after\n");
                rule.check(before, &after[file], &what);
            }
            *done.entry(name).or_default() += 1;
        }
    }
    println!("{done:?}");
    // Each edit took place, so its rule was checked.
    for name in [
        "add", "copy", "remove", "toggle", "fields", "rename", "text", "undo", "by hand",
    ] {
        assert!(done.get(name).is_some_and(|count| *count > 0), "{name}: {done:?}");
    }
}

/// Changes that an edit of the window may make.
enum Rule {
    /// Keys of the form in the block of this website.
    Fields(String),
    /// The name of a website, from and to.
    Rename(String, String),
    /// New blocks only.
    Adds,
    /// The block of this website is gone, and nothing else.
    Removes(String),
    /// The text of one file becomes this one.
    Becomes(String),
    /// Nothing, in the end.
    Unchanged,
}

impl Rule {
    fn check(&self, before: &str, after: &str, what: &str) {
        if before == after {
            return;
        }
        let what = format!("{what}{after}");
        match self {
            Rule::Unchanged => panic!("{what}"),
            Rule::Becomes(text) => assert_eq!(after, text, "{what}"),
            Rule::Rename(from, to) => {
                let expected = before.replace(&format!("\"{from}\""), &format!("\"{to}\""));
                assert_eq!(after, expected, "{what}");
            }
            Rule::Adds => {
                let (old, new) = (blocks(before), blocks(after));
                assert_eq!((&old.top, &old.end), (&new.top, &new.end), "{what}");
                assert_eq!(old.all[..], new.all[..old.all.len()], "{what}");
            }
            Rule::Removes(name) => {
                assert_eq!(blocks(before).without(name), blocks(after).without(name), "{what}");
            }
            Rule::Fields(name) => {
                // All comments stay in order. Those above a removed last key are above the next header then.
                assert_eq!(comments(before), comments(after), "{what}");
                let (old, new) = (blocks(before), blocks(after));
                assert_eq!((&old.top, old.all.len()), (&new.top, new.all.len()), "{what}");
                for (old, new) in old.all.iter().zip(&new.all) {
                    assert_eq!(old.header, new.header, "{what}");
                    if old.site.as_ref() == Some(name) {
                        check_fields(old, new, &what);
                    } else {
                        assert_eq!(old.lines, new.lines, "{what}");
                    }
                }
            }
        }
    }
}

/// Checks the block of a website whose fields were changed.
fn check_fields(old: &Block, new: &Block, what: &str) {
    assert_eq!(old.foreign(), new.foreign(), "{what}");
    let (old, new) = (beside(&old.lines), beside(&new.lines));
    for (key, comment) in &new {
        assert_eq!(old.get(key), Some(comment), "{key}: {what}");
    }
}

struct Run {
    driver: Driver,
    random: Random,
    /// Number of the last text that was made up.
    number: u64,
    /// Websites in the order in which they were added. The order of the list depends on ports that the kernel chooses.
    sites: Vec<String>,
}

impl Run {
    fn unique(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Changes a file as a person with an editor does: a comment, a key that the form does not know, or a value.
    /// Returns false if the edit would break the file.
    fn edit_by_hand(&mut self) -> bool {
        let files: Vec<String> = self.driver.texts().into_keys().collect();
        let file = self.random.choose(&files).clone();
        let text = self.driver.texts()[&file].clone();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let number = self.unique();
        // Lines after which an entry of a website may stand: within its block, and in no value of several lines.
        let mut places = Vec::new();
        let mut is_site = false;
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with('[') {
                is_site = line.starts_with("[site.") && !line.contains(".limits]") && !line.contains(".rule]");
            }
            let is_entry = line.starts_with('[') || line.contains(" = ") || line.starts_with('#');
            if is_site && is_entry {
                places.push(at + 1);
            }
        }
        if places.is_empty() {
            return false;
        }
        let at = *self.random.choose(&places);
        match self.random.below(3) {
            0 => lines.insert(at, format!("# by hand {number}")),
            1 => {
                let has_comment = lines[at - 1].contains('#');
                if !has_comment {
                    lines[at - 1].push_str(&format!("  # beside {number}"));
                }
            }
            _ => {
                // A key that the block lacks.
                let end = (at..lines.len())
                    .find(|line| lines[*line].starts_with('['))
                    .unwrap_or(lines.len());
                let start = (0..at).rev().find(|line| lines[*line].starts_with('[')).unwrap_or(0);
                let key = *self.random.choose(&["priority", "internal", "symlinks"]);
                if !lines[start..end].iter().any(|line| line.starts_with(key)) {
                    let value = match key {
                        "priority" => "\"low\"",
                        "internal" => "false",
                        _ => "\"owner\"",
                    };
                    lines.insert(at, format!("{key}   = {value} # own {number}"));
                }
            }
        }
        let edited = lines.join("\n") + "\n";
        // A person would see the error of the server, and correct it.
        let is_accepted = self.driver.accepts(&file, &edited);
        if is_accepted {
            self.driver.write(&file, &edited);
        }
        is_accepted
    }

    /// Edits by acts of the user. Returns the name of the edit, and what it may have changed; `None` if the server has
    /// refused it, or if there was nothing to change.
    fn edit_in_window(&mut self) -> (&'static str, Option<Rule>) {
        self.driver.refresh();
        let present = self.driver.names();
        self.sites.retain(|site| present.contains(site));
        let new = present
            .into_iter()
            .filter(|name| !self.sites.contains(name))
            .collect::<Vec<_>>();
        self.sites.extend(new);
        let site = self.random.choose(&self.sites).clone();
        let count = self.sites.len();
        match self.random.below(9) {
            0 => {
                let name = format!(":{}", desk::free_port());
                let is_done = self.add(&name);
                ("add", is_done.then_some(Rule::Adds))
            }
            1 if count < 9 => ("copy", self.change(&site, Act::DuplicateSite).then_some(Rule::Adds)),
            2 if count > 3 => {
                let is_done = self.change(&site, Act::RemoveSite);
                ("remove", is_done.then_some(Rule::Removes(site)))
            }
            3 => {
                let is_done = self.change(&site, Act::ToggleSite);
                ("toggle", is_done.then_some(Rule::Fields(site)))
            }
            4 => {
                let to = format!(":{}", desk::free_port());
                let is_done = self.rename(&site, &to);
                ("rename", is_done.then_some(Rule::Rename(site, to)))
            }
            5 => self.edit_text(),
            6 => self.take_back(&site),
            _ => {
                let is_done = self.edit_fields(&site);
                ("fields", is_done.then_some(Rule::Fields(site)))
            }
        }
    }

    fn add(&mut self, name: &str) -> bool {
        let folder = self.driver.folder("one");
        self.driver.act(Act::AddSite);
        self.driver.act(Act::SetField(FieldId::Folder, folder));
        let kind = WebsiteKind::Files.value().to_owned();
        self.driver.act(Act::SetField(FieldId::Kind, kind));
        self.driver.act(Act::SetField(FieldId::Name, name.to_owned()));
        self.driver.wait_for_folder();
        let is_done = self.driver.edit(Act::Submit);
        self.driver.act(Act::Cancel);
        is_done
    }

    fn change(&mut self, site: &str, act: Act) -> bool {
        self.driver.act(Act::Select(site.to_owned()));
        self.driver.edit(act)
    }

    fn rename(&mut self, from: &str, to: &str) -> bool {
        self.driver.open_form(from);
        self.driver.act(Act::SetField(FieldId::SiteName, to.to_owned()));
        self.driver.act(Act::LeaveField(FieldId::SiteName));
        let is_done = self.driver.edit(Act::Submit);
        self.driver.leave();
        if is_done {
            // It keeps its place in the order.
            self.sites
                .iter_mut()
                .filter(|site| *site == from)
                .for_each(|site| to.clone_into(site));
        }
        is_done
    }

    /// Changes one to three fields of a website to random values.
    fn edit_fields(&mut self, site: &str) -> bool {
        const VALUES: [(&str, &[&str]); 11] = [
            ("root", &["one", "two", "./one"]),
            ("browse", &["true", "false"]),
            (
                "index",
                &["", "home.html", "index.html\nhome.html", "a.html\nb.html\nc.html"],
            ),
            ("fallback", &["", "/index.html"]),
            ("headers", &["", "X-A = 1", "X-A = 2\nX-B = 3", "X-B = 3"]),
            ("redirects", &["", "/old = /new", "/a = /b\n/old = /new"]),
            ("allow", &["", "127.0.0.1", "127.0.0.1\n::1"]),
            ("limits.body_size", &["", "1MiB", "20MiB"]),
            ("compress", &["true", "false"]),
            ("errors", &["", "404 = /404.html"]),
            ("deny", &["", "10.0.0.1"]),
        ];
        self.driver.open_form(site);
        for _ in 0..=self.random.below(3) {
            let (name, values) = *self.random.choose(&VALUES);
            let value = (*self.random.choose(values)).to_owned();
            if let Some(id) = self.driver.field(name) {
                self.driver.act(Act::SetField(id, value));
                self.driver.act(Act::LeaveField(id));
            }
        }
        let is_done = self.driver.has_unsaved_input() && self.driver.edit(Act::Submit);
        self.driver.leave();
        is_done
    }

    /// Adds a comment to a file in the editor.
    fn edit_text(&mut self) -> (&'static str, Option<Rule>) {
        let number = self.unique();
        let files: Vec<String> = self.driver.texts().into_keys().collect();
        let file = self.random.choose(&files).clone();
        let text = format!("{}# typed {number}\n", self.driver.texts()[&file]);
        self.driver.open_text(&file);
        self.driver.act(Act::SetText(text.clone(), 0));
        let is_done = self.driver.edit(Act::Submit);
        self.driver.leave();
        ("text", is_done.then_some(Rule::Becomes(text)))
    }

    /// Changes a website, and takes the change back.
    fn take_back(&mut self, site: &str) -> (&'static str, Option<Rule>) {
        let before = self.driver.texts();
        let mut is_done = self.change(site, Act::ToggleSite);
        if is_done {
            assert_ne!(before, self.driver.texts());
            is_done = self.driver.edit(Act::Undo);
            assert_eq!(before, self.driver.texts(), "the undo restores the text");
        }
        ("undo", is_done.then_some(Rule::Unchanged))
    }
}
