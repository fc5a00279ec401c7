//! File with the place of the server. It may have a token, so only its owner can read it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::files::replace;
use crate::elsewhere::Elsewhere;
use crate::job::Trouble;

/// Mode of the file.
const MODE: u32 = 0o600;

/// Reads the file. Without one, the server is on this computer. If other accounts have access, for example to a
/// copy, the access is removed, because the file contains the token.
pub fn read(file: &Path) -> Elsewhere {
    let Ok(text) = fs::read_to_string(file) else {
        return Elsewhere::default();
    };
    let is_open = fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    if is_open {
        // A file of another owner stays as it is.
        let _ = fs::set_permissions(file, Permissions::from_mode(MODE));
    }
    Elsewhere::parse(&text)
}

/// Writes the file.
///
/// # Errors
///
/// Returns a message if the file cannot be written.
pub fn write(file: &Path, elsewhere: &Elsewhere) -> Result<(), Trouble> {
    let failed = |error: std::io::Error| Trouble::of(file, &error);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    replace(file, &elsewhere.text()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elsewhere::ServerPlace;

    #[test]
    fn the_file_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rocknet/server.toml");
        assert_eq!(read(&file), Elsewhere::default());
        let elsewhere = Elsewhere {
            place: ServerPlace::Address,
            address: "localhost".to_owned(),
            token: "secret".to_owned(),
            ..Elsewhere::default()
        };
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let beside = file.with_extension("toml.new");
        fs::write(&beside, "").unwrap();
        fs::set_permissions(&beside, Permissions::from_mode(0o644)).unwrap();
        write(&file, &elsewhere).unwrap();
        assert_eq!((mode(&file), read(&file)), (MODE, elsewhere.clone()));
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!((read(&file), mode(&file)), (elsewhere.clone(), MODE));
        assert!(write(Path::new("/proc/none/server.toml"), &elsewhere).is_err());
    }
}
