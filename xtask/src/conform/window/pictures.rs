//! Pictures of every view, light and dark, for the manual.

use super::account::Account;
use super::desk::{Desk, Display};
use super::example::Example;
use super::waiting::wait;
use crate::Failure;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Themes, as in the settings of the window.
const THEMES: [&str; 2] = ["light", "dark"];

/// Options of ImageMagick that make the files small: the views have few colours.
const REDUCED: [&str; 6] = [
    "+dither",
    "-colors",
    "128",
    "-strip",
    "-define",
    "png:compression-level=9",
];

/// Line with an error in the text of the configuration.
const ERROR: &str = "rot = \"here\"";

/// Beginning of a key, for which the editor has proposals.
const BEGINNING: &str = "re";

/// Time that the charts show.
const CHARTED: Duration = Duration::from_secs(64);

/// Writes the pictures to a folder. The names of the files are those of the views, followed by the theme.
pub fn run(display: &Display, programs: [&Path; 2], folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)?;
    let mut example = Example::create(programs)?;
    for theme in THEMES {
        let camera = Camera { folder, theme };
        let desk = desk_of_theme(display, &example, theme)?;
        desk.wait_for_title("Websites – RockNet – Stopped")?;
        camera.take(&desk, "welcome")?;
        desk.quit()?;
    }
    example.serve()?;
    for theme in THEMES {
        let camera = Camera { folder, theme };
        let desk = desk_of_theme(display, &example, theme)?;
        let began = Instant::now();
        desk.wait_for_title("Websites – RockNet – Running")?;
        example.trust("untrust")?;
        forms(&camera, &desk, &example.account)?;
        example.trust("trust")?;
        pages(&camera, &desk, &example)?;
        // The charts show a full minute.
        std::thread::sleep(CHARTED.saturating_sub(began.elapsed()));
        desk.show_page("Activity")?;
        camera.take(&desk, "activity")?;
        desk.show_page("Websites")?;
        desk.press(&["End"])?;
        camera.take(&desk, "websites")?;
        desk.quit()?;
    }
    Ok(())
}

/// Opens the window in a theme.
fn desk_of_theme<'d>(display: &'d Display, example: &Example, theme: &str) -> Result<Desk<'d>, Failure> {
    let settings = format!("theme = \"{theme}\"\nlanguage = \"en\"\n");
    example.account.write(".config/rocknet/window.toml", &settings)?;
    Desk::start(display, &example.account)
}

/// Takes pictures of one theme.
struct Camera<'f> {
    folder: &'f Path,
    theme: &'f str,
}

impl Camera<'_> {
    /// Writes a picture of the window once it has stopped changing.
    fn take(&self, desk: &Desk<'_>, view: &str) -> Result<(), Failure> {
        let file = self.folder.join(format!("{view}-{}.png", self.theme));
        let mut before = Vec::new();
        // Charts change each second, so the second picture is good enough if it follows at once.
        let deadline = Instant::now() + Duration::from_secs(3);
        wait("the window is drawn", || {
            std::thread::sleep(Duration::from_millis(150));
            desk.picture(&file, &REDUCED).ok()?;
            let picture = fs::read(&file).ok()?;
            let is_same = std::mem::replace(&mut before, picture) == before;
            (is_same || Instant::now() > deadline).then_some(())
        })?;
        println!("{}: {} KiB", file.display(), fs::metadata(&file)?.len().div_ceil(1024));
        Ok(())
    }
}

/// The forms and the editor.
fn forms(camera: &Camera<'_>, desk: &Desk<'_>, account: &Account) -> Result<(), Failure> {
    desk.press(&["ctrl+n"])?;
    desk.wait_for_title("Add website")?;
    desk.type_text(&account.home.join("websites/recipes").to_string_lossy())?;
    desk.press_times("Tab", 3)?;
    desk.wait_for_text("The server accepts these settings")?;
    camera.take(desk, "add")?;
    desk.press(&["Return"])?;
    desk.wait_for_title("recipes.localhost is ready")?;
    desk.wait_for_text("The website replies")?;
    camera.take(desk, "added")?;
    desk.press(&["ctrl+z"])?;
    desk.wait_for_title("Websites")?;
    desk.press(&["End", "F2"])?;
    // Until the form is loaded, the title is "Edit website".
    desk.wait_for_title("Edit shop.localhost")?;
    // A folder that does not exist, and the right one again.
    let folder = account.home.join("websites/shop").to_string_lossy().into_owned();
    desk.press(&["Tab", "Tab", "ctrl+a"])?;
    desk.type_text(&folder.replace("shop", "shpo"))?;
    desk.press(&["Tab", "shift+Tab"])?;
    desk.wait_for_text("does not exist")?;
    camera.take(desk, "edit")?;
    desk.press(&["ctrl+a"])?;
    desk.type_text(&folder)?;
    desk.press(&["Escape"])?;
    desk.wait_for_title("Websites")?;
    desk.press(&["ctrl+e"])?;
    desk.wait_for_title("Configuration file")?;
    desk.press(&["ctrl+End"])?;
    desk.type_text(ERROR)?;
    desk.wait_for_text("unknown key")?;
    desk.press(&["Return"])?;
    desk.type_text(BEGINNING)?;
    desk.press(&["ctrl+space"])?;
    camera.take(desk, "text")?;
    desk.press(&["Escape"])?;
    // Without its error, the text is that of the file, and the editor closes without a question.
    desk.press_times("BackSpace", ERROR.len() + 1 + BEGINNING.len())?;
    desk.press(&["Escape"])?;
    desk.wait_for_title("Websites")
}

/// The pages of the navigation, except those with charts.
fn pages(camera: &Camera<'_>, desk: &Desk<'_>, example: &Example) -> Result<(), Failure> {
    desk.show_page("Logs")?;
    wait("log lines", || example.has_traffic().then_some(()))?;
    camera.take(desk, "logs")?;
    for (title, view, wanted) in [
        ("Server", "server", "Worker threads"),
        ("Other servers", "upstreams", "127.0.0.1:3000"),
        ("Traffic", "traffic", "copies the pictures"),
        ("PHP", "php", "Processes"),
        ("Databases", "databases", "MariaDB"),
        ("Certificates", "certificates", "localhost"),
    ] {
        desk.show_page(title)?;
        desk.wait_for_text(wanted)?;
        camera.take(desk, view)?;
    }
    desk.press_button("Certificates", 1)?;
    desk.wait_for_text("Chromium")?;
    camera.take(desk, "browsers")?;
    desk.show_page("Check-up")?;
    desk.wait_for_text("Checks:")?;
    camera.take(desk, "check-up")?;
    desk.show_page("History")?;
    desk.wait_for_text("Lines")?;
    desk.press(&["Home"])?;
    camera.take(desk, "history")?;
    desk.press(&["Return"])?;
    desk.wait_for_text("All changes")?;
    camera.take(desk, "change")?;
    desk.show_page("Settings")?;
    camera.take(desk, "settings")
}
