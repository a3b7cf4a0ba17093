use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::binaries;
use crate::guard::Guard;

/// How long a server may take until it accepts connections; after a crash it first replays its log.
const START_MAX: Duration = Duration::from_secs(60);

/// How often whether a server is up or gone is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The files of a server that encrypts.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";

/// A PostgreSQL server of one's own, gone when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    owner: Option<Owner>,
    encrypts: bool,
    server: Option<Child>,
    _guard: Guard,
}

/// The user a server runs as.
#[derive(Clone, Copy, Debug)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// Makes a cluster and starts its server.
    ///
    /// As root, the server runs as the user `postgres` or, if there is none, `nobody`, since it refuses root.
    ///
    /// # Errors
    /// No server is installed and none can be, or it does not start; the message says what it wrote.
    pub fn start() -> io::Result<Self> {
        let mut cluster = Self::new()?;
        cluster.restart()?;
        Ok(cluster)
    }

    /// The same with a server that can encrypt its connections, with this certificate and its key, as PEM.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_encrypted(certificate: &str, key: &str) -> io::Result<Self> {
        let mut cluster = Self::new()?;
        cluster.write_private(CERTIFICATE, certificate)?;
        cluster.write_private(KEY, key)?;
        cluster.encrypts = true;
        cluster.restart()?;
        Ok(cluster)
    }

    /// A cluster whose server has not been started.
    fn new() -> io::Result<Self> {
        let programs = binaries::find_or_install()?;
        let folder = new_folder()?;
        let guard = Guard::new(&folder)?;
        let owner = is_root()?.then(server_user).transpose()?;
        if let Some(owner) = owner {
            chown(&folder, Some(owner.uid), Some(owner.gid))?;
        }
        let (port, encrypts) = (free_port()?, false);
        let cluster = Self { folder, programs, port, owner, encrypts, server: None, _guard: guard };
        cluster.init()?;
        Ok(cluster)
    }

    /// A file that only the server may read: it refuses a key that others can.
    fn write_private(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.folder.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        match self.owner {
            Some(owner) => chown(&path, Some(owner.uid), Some(owner.gid)),
            None => Ok(()),
        }
    }

    /// Where the server is: its user may do everything, and needs no password.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Ends the server as a crash of the machine would, as far as a process can tell: without a chance to finish
    /// anything.
    ///
    /// # Errors
    /// The processes cannot be looked at or ended.
    pub fn kill(&mut self) -> io::Result<()> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let workers = children(server.id())?;
        server.kill()?;
        server.wait()?;
        for worker in &workers {
            // Most are gone by themselves by now, so that a failure tells nothing.
            let _ = Command::new("kill")
                .args(["-9", &worker.to_string()])
                .stderr(Stdio::null())
                .status();
        }
        let deadline = Instant::now() + START_MAX;
        while workers.iter().any(|worker| Path::new("/proc").join(worker.to_string()).exists()) {
            look_again(deadline, "its processes did not end")?;
        }
        // What it says is no longer true, and the guard would send a signal to whoever gets that number next.
        fs::remove_file(self.data().join("postmaster.pid"))
    }

    /// Starts the server again, on the same port, and waits until it accepts connections. One that runs is left alone.
    ///
    /// # Errors
    /// It does not start; the message says what it wrote.
    pub fn restart(&mut self) -> io::Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        let log = fs::File::create(self.folder.join("log"))?;
        let port = self.port.to_string();
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
        command.args([
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-c",
            "fsync=on",
            "-c",
            "max_connections=200",
        ]);
        if self.encrypts {
            let file = |name: &str| self.folder.join(name).display().to_string();
            command.args(["-c", "ssl=on"]);
            command.arg("-c").arg(format!("ssl_cert_file={}", file(CERTIFICATE)));
            command.arg("-c").arg(format!("ssl_key_file={}", file(KEY)));
        }
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let mut server = command.spawn()?;
        let deadline = Instant::now() + START_MAX;
        while !self.accepts() {
            if server.try_wait()?.is_some() {
                return Err(self.failure("the PostgreSQL server ended while it started"));
            }
            look_again(deadline, "the PostgreSQL server does not accept connections")?;
        }
        self.server = Some(server);
        Ok(())
    }

    fn init(&self) -> io::Result<()> {
        let log = fs::File::create(self.folder.join("log"))?;
        let mut command = self.program("initdb");
        command.arg("-D").arg(self.data()).args([
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        ]);
        // Syncs only the making of the cluster itself, which no test crashes.
        command.args(["--auth=trust", "--no-sync"]);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        if command.status()?.success() {
            return Ok(());
        }
        Err(self.failure("`initdb` failed"))
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(&self.folder);
        if let Some(owner) = self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The server writes `ready` into its lock file when it accepts connections.
    fn accepts(&self) -> bool {
        let lock = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        lock.lines().nth(7).is_some_and(|status| status.trim() == "ready")
            && TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
    }

    fn failure(&self, what: &str) -> io::Error {
        let mut said = String::new();
        if let Ok(mut log) = fs::File::open(self.folder.join("log")) {
            let _ = log.read_to_string(&mut said);
        }
        io::Error::other(format!("{what}:\n{said}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        // An interrupt is a fast shutdown. The guard ends what does not follow it.
        let pid = server.id().to_string();
        if Command::new("kill").args(["-INT", &pid]).status().is_ok_and(|status| status.success()) {
            let _ = server.wait();
        }
    }
}

fn look_again(deadline: Instant, why: &str) -> io::Result<()> {
    if Instant::now() > deadline {
        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
    }
    std::thread::sleep(LOOK_EVERY);
    Ok(())
}

pub(crate) fn is_root() -> io::Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

fn server_user() -> io::Result<Owner> {
    let users = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| {
        let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let found = fields.find(|fields| fields.first() == Some(&name))?;
        Some(Owner { uid: found.get(2)?.parse().ok()?, gid: found.get(3)?.parse().ok()? })
    };
    find("postgres").or_else(|| find("nobody")).ok_or_else(|| {
        io::Error::other(
            "the server refuses to run as root, and there is no user `postgres` or `nobody`",
        )
    })
}

fn new_folder() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("superstep-postgres-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir(&folder)?;
    Ok(folder)
}

/// A port nobody listens on. Another writer could take it before the server does; then it does not
/// start, and says so.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The processes a process has started.
fn children(parent: u32) -> io::Result<Vec<u32>> {
    let processes = fs::read_dir("/proc")?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    Ok(ids.filter(|id| parent_of(*id) == Some(parent)).collect())
}

/// The parent stands second after the name, which is in brackets and may contain anything.
fn parent_of(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
