//! A Debian that is booted with its service manager in a container of systemd-nspawn.

use crate::command::{output, run};
use crate::packages::is_root;
use crate::{Failure, repository};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A Debian system that a container boots.
pub struct Debian {
    /// Name of the release.
    pub suite: &'static str,
    /// Name of the folder that keeps the system between runs.
    folder: &'static str,
    /// Packages beyond the smallest system, with commas.
    included: &'static str,
    /// Type of the service under the systemd of this release. The unit names `notify`, then `notify-reload`. Versions
    /// before 253 do not know the second type, and use the first.
    pub service_type: &'static str,
}

/// Packages with which a server is installed and used.
const SERVER: &str = "systemd,systemd-sysv,dbus,curl";

/// Systems in which the package of the server is tested.
pub const SERVERS: [Debian; 2] = [
    Debian {
        suite: "bookworm",
        folder: "debian-bookworm",
        included: SERVER,
        service_type: "notify",
    },
    Debian {
        suite: "trixie",
        folder: "debian-trixie",
        included: SERVER,
        service_type: "notify-reload",
    },
];

/// System in which the package of the desktop program is tested: it has polkit, a display, the libraries of the
/// program, and the tools that examine the files for desktops.
pub const DESKTOP: Debian = Debian {
    suite: "trixie",
    folder: "debian-trixie-desktop",
    included: "systemd,systemd-sysv,dbus,curl,libpam-systemd,polkitd,xvfb,xdotool,desktop-file-utils,appstream,fonts-dejavu-core,\
               libpango-1.0-0,libpangocairo-1.0-0,libpangoxft-1.0-0,libx11-6,libxcursor1,libxext6,libxfixes3,libxft2,\
               libxinerama1,libxrender1",
    service_type: "notify-reload",
};

/// Timeout for the system to boot: far longer than a busy machine needs.
const BOOT_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeout for a change in the container.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between attempts to find the first process of the container, or a change in it.
const PAUSE: Duration = Duration::from_millis(100);

/// Folder of the container that shows the folder of the packages.
pub const SHARED: &str = "/packages";

/// A booted container, which is killed when dropped. Its changes are in memory and are lost.
pub struct BootedSystem {
    nspawn: Child,
    /// Process ID of the container's first process, as the host sees it.
    leader: u32,
}

impl BootedSystem {
    /// Boots the container. `shared`: folder that the container sees as [`SHARED`]. `console`: file for its output.
    pub fn boot(debian: &Debian, shared: &Path, console: &Path) -> Result<Self, Failure> {
        if !is_root() {
            return Err("root is needed to boot a container".into());
        }
        let base = base(debian)?;
        // nspawn needs a folder on a tmpfs below `/run`, which is on the disk in some virtual machines.
        let script = "mount -t tmpfs tmpfs /run && exec systemd-nspawn \"$@\"";
        let nspawn = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
            .arg(format!("--directory={}", base.display()))
            .arg(format!("--bind-ro={}:{SHARED}", shared.display()))
            // With these options, nspawn needs neither a service manager nor a bus of the host.
            .args(["--register=no", "--keep-unit"])
            .args(["--private-network", "--volatile=overlay", "--boot"])
            .stdin(Stdio::null())
            .stdout(File::create(console)?)
            .stderr(File::options().append(true).open(console)?)
            .spawn()?;
        let mut machine = Self { nspawn, leader: 0 };
        let deadline = Instant::now() + BOOT_TIMEOUT;
        while machine.leader == 0 {
            machine.leader = machine.find_leader().unwrap_or_default();
            if Instant::now() > deadline || machine.nspawn.try_wait()?.is_some() {
                let text = fs::read_to_string(console).unwrap_or_default();
                return Err(format!("the container has not booted: {text}").into());
            }
            thread::sleep(PAUSE);
        }
        // The state is `degraded` if a unit has failed, which some do in containers.
        let mut state = String::new();
        while !["running\n", "degraded\n"].contains(&state.as_str()) {
            if Instant::now() > deadline {
                return Err(format!("the system in the container is {}", state.trim()).into());
            }
            thread::sleep(PAUSE);
            state = machine
                .printed("systemctl is-system-running 2>/dev/null || true")
                .unwrap_or_default();
        }
        Ok(machine)
    }

    /// Returns the first process of the container, which is a child of nspawn.
    fn find_leader(&self) -> Option<u32> {
        let id = self.nspawn.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().find_map(|child| {
            let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
            (name == "systemd\n").then(|| child.parse().ok())?
        })
    }

    /// Runs a shell script in the container, and returns its output.
    pub fn printed(&self, script: &str) -> Result<String, Failure> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.leader));
        command.args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--"]);
        command.args([
            "env",
            "-i",
            "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
        ]);
        output(command.args(["DEBIAN_FRONTEND=noninteractive", "sh", "-ec", script]))
    }

    /// Runs a shell script in the container, and shows it.
    pub fn run(&self, script: &str) -> Result<(), Failure> {
        println!("# {script}");
        self.printed(script).map(drop)
    }

    /// Fails unless a script succeeds and prints `part`.
    pub fn expect(&self, script: &str, part: &str) -> Result<(), Failure> {
        println!("# {script}");
        let text = self.printed(script)?;
        if text.contains(part) {
            return Ok(());
        }
        Err(format!("`{script}` printed no {part:?}:\n{text}").into())
    }

    /// Waits until a script succeeds.
    pub fn wait_until(&self, script: &str) -> Result<(), Failure> {
        println!("# {script} (awaited)");
        let deadline = Instant::now() + CHANGE_TIMEOUT;
        loop {
            match self.printed(script) {
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => thread::sleep(PAUSE),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Fails unless a script fails.
    pub fn expect_failure(&self, script: &str) -> Result<(), Failure> {
        println!("# {script} (fails)");
        match self.printed(script) {
            Ok(text) => Err(format!("`{script}` succeeded:\n{text}").into()),
            Err(_) => Ok(()),
        }
    }
}

impl Drop for BootedSystem {
    fn drop(&mut self) {
        // The kernel ends all processes of a container with its first process, but not with nspawn.
        if let Some(leader) = i32::try_from(self.leader).ok().and_then(Pid::from_raw) {
            let _ = kill_process(leader, Signal::KILL);
        }
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
    }
}

/// Returns the folder with the system, which is installed on first use.
fn base(debian: &Debian) -> Result<PathBuf, Failure> {
    let tools = repository::target().join("tools");
    let base = tools.join(debian.folder);
    if base.exists() {
        return Ok(base);
    }
    fs::create_dir_all(&tools)?;
    let new = tools.join(format!("{}.new", debian.folder));
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    println!("installing Debian {}", debian.suite);
    let include = format!("--include={}", debian.included);
    run(Command::new("debootstrap")
        .args(["--variant=minbase", &include, debian.suite])
        .arg(&new)
        .stdout(Stdio::null()))?;
    fs::rename(new, &base)?;
    Ok(base)
}
