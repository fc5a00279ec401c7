//! The model, its worker and a real server, without a window.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rocknet_control::Client;
use rocknet_control::api::Request;
use rocknet_control::config::{Candidate, Checked};
use rocknet_gui::act::{Act, FieldId, PageName};
use rocknet_gui::job::{Job, Report};
use rocknet_gui::model::{Effect, Fetched, Model, Settings};
use rocknet_gui::worker::Options;

use crate::desk::{Running, TIMEOUT, free_port, wait};
use crate::machine::{self, WorkerLink};

/// The model with a server.
pub struct Driver {
    model: Model,
    worker: WorkerLink,
    client: Client,
    // The server ends before its folder.
    _server: Running,
    folder: tempfile::TempDir,
}

impl Driver {
    /// Starts a server with four websites in two files, and connects.
    pub fn start(program: &Path) -> Driver {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one", "two", "sites"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let ports: Vec<u16> = (0..4).map(|_| free_port()).collect();
        let main = format!(
            r#"# The first line.
include = ["sites/*.toml"] # more

[server] # this machine
mode = "dev"
state = 'state'   # beside it

# The first website,
# with a comment of two lines.
[site.":{}"] # first
root   = "one" # aligned by hand
priority = "low"
# Before the index.
index = ["home.html", 'index.html']

# Its limits.
[site.":{}".limits]
body_size = "5MiB"
answer_timeout = "30s" # not in the form

[site.":{}"]
  root = 'two'
  [[site.":{}".rule]]   # indented
  path = "/gone"
  respond = 410

[site.":{}"]
root = "one"
redirects = {{ "/old" = "/new" }}
# The end.
"#,
            ports[0], ports[0], ports[1], ports[1], ports[2]
        );
        let included = format!(
            "# A file of its own.\n[site.\":{}\"]\nroot = \"../one\"\nheaders.X-Own = \"1\"\n",
            ports[3]
        );
        fs::write(folder.path().join("rocknet.toml"), main).unwrap();
        fs::write(folder.path().join("sites/b.toml"), included).unwrap();
        let config = folder.path().join("rocknet.toml");
        let server = Running(machine::start_server(program, &config));
        let socket = folder.path().join("state/admin/control.sock");
        let client = wait("the server runs", || Client::connect(&socket).ok());
        let options = Options {
            socket: Some(socket),
            config: Some(config),
            program: Some(program.to_owned()),
            ..Options::default()
        };
        let worker = WorkerLink::start(options);
        let mut driver = Driver {
            model: Model::new(Settings::default()),
            worker,
            client,
            _server: server,
            folder,
        };
        driver.pump(|model| model.websites.is_loaded);
        driver
    }

    /// Returns the path of a folder beside the configuration.
    pub fn folder(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn send(&self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Job(job) = effect {
                self.worker.send(job);
            }
        }
    }

    fn take_report(&mut self) -> Report {
        let report = self.worker.reports.recv_timeout(TIMEOUT).expect("a report");
        let effects = self.model.report(report.clone());
        self.send(effects);
        report
    }

    fn pump(&mut self, done: impl Fn(&Model) -> bool) {
        while !done(&self.model) {
            self.take_report();
        }
    }

    /// Carries out an act of the user.
    pub fn act(&mut self, act: Act) {
        let effects = self.model.act(act);
        self.send(effects);
    }

    /// Carries out an act that edits the configuration, and waits for the result. Returns false if the server refuses
    /// it, or if there is nothing to do.
    pub fn edit(&mut self, act: Act) -> bool {
        let effects = self.model.act(act);
        let edits =
            |effect: &Effect| matches!(effect, Effect::Job(Job::Edit(..) | Job::TakeBack(_) | Job::Replace(..)));
        let is_edit = effects.iter().any(edits);
        self.send(effects);
        if !is_edit {
            return false;
        }
        loop {
            if let Report::Edited(purpose, result) = self.take_report() {
                if let Err(error) = &result {
                    println!("{purpose:?}: {error} {}", error.details.as_deref().unwrap_or_default());
                }
                return result.is_ok();
            }
        }
    }

    /// Queries the websites, so that the list is that of the file.
    pub fn refresh(&mut self) {
        self.act(Act::Show(PageName::Websites));
        self.worker.send(Job::Connect);
        while !matches!(self.take_report(), Report::Polled(poll) if poll.sites.is_some()) {}
    }

    /// Returns the names of the websites.
    pub fn names(&self) -> Vec<String> {
        let shown = self.model.websites.shown();
        shown.iter().map(|website| website.summary.name.clone()).collect()
    }

    /// Waits until the folder of the new website was looked into.
    pub fn wait_for_folder(&mut self) {
        self.pump(|model| model.draft.as_ref().is_some_and(|draft| draft.inspection.is_some()));
    }

    /// Opens the form of a website.
    pub fn open_form(&mut self, site: &str) {
        self.act(Act::Select(site.to_owned()));
        self.act(Act::EditSite);
        self.pump(|model| matches!(&model.site_edit, Fetched::Loaded(edit) if edit.form.name == site));
    }

    /// Returns the field of a key; `None` if the form does not show it, or cannot show its value.
    pub fn field(&self, name: &str) -> Option<FieldId> {
        let Fetched::Loaded(edit) = &self.model.site_edit else {
            return None;
        };
        let found = edit.shown().find(|(_, field, _)| field.name == name);
        found.filter(|(_, field, _)| field.other.is_none()).map(|(id, ..)| id)
    }

    /// Returns true if the page has something to save.
    pub fn has_unsaved_input(&self) -> bool {
        self.model.has_unsaved_input()
    }

    /// Opens a file in the editor.
    pub fn open_text(&mut self, file: &str) {
        let is_open = |model: &Model, file: Option<&str>| match &model.text_edit {
            Fetched::Loaded(edit) => file.is_none_or(|file| edit.read.file == Path::new(file)),
            _ => false,
        };
        self.act(Act::EditText);
        self.pump(|model| is_open(model, None));
        self.act(Act::SetField(FieldId::File, file.to_owned()));
        self.pump(|model| is_open(model, Some(file)));
    }

    /// Leaves the form or the editor, and discards its input.
    pub fn leave(&mut self) {
        self.act(Act::Cancel);
        if self.model.question().is_some() {
            self.act(Act::Discard);
        }
        assert_eq!(self.model.page, PageName::Websites);
    }

    /// Returns the texts of the files, by path.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let paths = ["rocknet.toml", "sites/b.toml"].map(|name| self.folder.path().join(name));
        let text = |path: PathBuf| (path.to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap());
        paths.into_iter().map(text).collect()
    }

    /// Returns true if the server would accept a text.
    pub fn accepts(&mut self, file: &str, text: &str) -> bool {
        let candidate = Candidate {
            text: text.to_owned(),
            file: Some(file.into()),
        };
        let checked: Checked = self.client.call(&Request::CheckConfig(candidate)).unwrap();
        if !checked.is_valid {
            println!("by hand: {:?}", checked.findings.first());
        }
        checked.is_valid
    }

    /// Writes a file, as an editor does.
    pub fn write(&self, file: &str, text: &str) {
        fs::write(file, text).unwrap();
    }
}
