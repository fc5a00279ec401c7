//! Tests of the folder of the control socket.

use std::os::unix::fs::MetadataExt;

use rocknet_io::privileges;
use rocknet_testing::{Need, skip};

use super::*;

#[test]
fn the_account_of_the_server_reaches_a_socket_in_new_folders() {
    if !privileges::is_root() {
        skip(Need::Root, "only root can give a folder to another account");
        return;
    }
    let top = tempfile::tempdir().unwrap();
    let folder = top.path().join("a/b/c");
    let mut config = Config::default();
    config.admin.socket = ControlSocket::File(folder.join("admin.sock"));
    let user = User {
        name: "x".into(),
        uid: 4242,
        gid: 4243,
        groups: vec![4243],
        home: None,
    };
    prepare_folder(&config, &user);
    let found = |folder: &Path| {
        let found = fs::metadata(folder).unwrap();
        (found.uid(), found.gid(), found.mode() & 0o777)
    };
    assert_eq!(found(&folder), (4242, 4243, 0o750));
    for parent in ["a", "a/b"] {
        let (uid, _, mode) = found(&top.path().join(parent));
        assert_eq!((uid, mode), (0, 0o755), "{parent}");
    }
    // A folder that exists is left as it is.
    config.admin.socket = ControlSocket::File(top.path().join("a/admin.sock"));
    prepare_folder(&config, &user);
    assert_eq!(found(&top.path().join("a")).0, 0);
}
